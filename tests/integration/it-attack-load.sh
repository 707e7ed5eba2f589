#!/usr/bin/env bash
# Too much of everything: processes, memory, output, signals. What is asked of the host is bounded by the test; the
# sandbox itself has no limits here but those that every command has.
#
# shellcheck disable=SC1091,SC2016,SC2154 # what sh-lib.sh sets; texts that the inner shell expands
. "${STELLA_TEST_LIB:?run this test through meson test}/sh-lib.sh"
preflight root fuse userns seccomp || exit $?

load=/opt/attack/attack-load
ws=$tmp/ws
mkdir "$ws" "$tmp/attack"
cp "$STELLA_TEST_BUILD/tests/attack/attack-load" "$tmp/attack/"
cd "$ws" || exit 1
inside() { # OPTIONS... -- COMMAND...
  run "$EXEC" run --workspace "$ws" --ro "$tmp/attack:/opt/attack" "$@"
}
inside -- true
before=$(list_leaks)
no_process() { check_equal "no process of it is left: $1" "$(pgrep -c attack-load || true)" 0; }
milliseconds() { echo $((${EPOCHREALTIME/[.,]/} / 1000)); }

# Processes that multiply until there are 500 and stay. Meanwhile another sandbox works.
"$EXEC" run --workspace "$ws" --ro "$tmp/attack:/opt/attack" --timeout 8s -- $load bomb 500 >"$tmp/bomb.out" 2>&1 &
bomb=$!
test_pids+=("$bomb")
check 'a bomb goes off' wait_for 8 test -e gone-off
inside --timeout 60s -- sh -c 'true & wait $!; echo forks'
expect_line out forks
status=0
wait "$bomb" || status=$?
check_equal 'a bomb ends with its time' "$status $(cat "$tmp/bomb.out")" '124 100 processes'
no_process bomb
# The same when the command that lit it ends by itself: who multiplies does not hold up the end.
rm gone-off
inside --json --timeout 60s -- sh -c "$load bomb 400 & until test -e gone-off; do sleep 0.05; done; exit 5"
expect_match out '"ended": "exited", "exit_code": 5, '
expect_match out '"left_over_killed": [0-9]{3}'
no_process 'what it left'
rm gone-off
started=$(milliseconds)
inside --json --timeout 60s -- $load churn 4
took=$(($(milliseconds) - started))
expect_match out '"ended": "exited", "exit_code": 5, '
check "processes that come and go hold up no end ($took ms)" test "$took" -lt 20000
no_process churn

# Who ends while the command runs on is reaped, and not taken for it.
inside --json --timeout 120s -- $load orphans 10000
expect_match out '"ended": "exited", "exit_code": 42, .*"stdout": "0 zombies\\n"'
expect_match out '"left_over_killed": 0,'

# Memory: as much as the process may have by a limit of its own, and then the error that programs expect.
inside --json -- $load hog 256
expect_match out '"exit_code": 0, .*"stdout": "ENOMEM after 2[0-9][0-9] MiB'
# What is memory behind a file is bounded: the size of each tmpfs is not the machine's.
inside -- sh -c 'df -kP /run /dev/shm /dev | awk "NR > 1 { print \$6, \$2 }"; head -c 20000000 /dev/zero >/run/full'
check_equal 'writing past the room is refused' "$status" 1
expect_line out '/run 16384'
expect_line out '/dev/shm 1048576'
expect_line out '/dev 64'
expect_match err 'No space left on device'
inside -- sh -c 'head -c 2000000 /dev/zero >/run/some && wc -c </run/some'
expect_line out 2000000

# Output: read to the end of the time, kept to the cap, in memory of the cap and a constant.
cat >"$tmp/measure.py" <<'END'
import resource, subprocess, sys
r = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
print(r.returncode, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
END
run python3 "$tmp/measure.py" "$EXEC" run --workspace "$ws" --ro "$tmp/attack:/opt/attack" -- true
read -r _ base <<<"$out"
run python3 "$tmp/measure.py" "$EXEC" run --workspace "$ws" --ro "$tmp/attack:/opt/attack" --json \
  --limit output_bytes=1048576 --timeout 2s -- $load flood
read -r code peak <<<"$out"
check_equal 'a flood ends with its time' "$code" 124
# twice the cap, as both streams are flooded, once more as JSON
check "and takes $((peak - base)) KiB" test $((peak - base)) -lt $((16 * 1024))
inside --json --limit output_bytes=1000 --timeout 1s -- $load flood
expect_match out '"ended": "timed_out", .*"stdout_truncated": true, .*"stderr_truncated": true'
no_process flood

# A command that blocks every signal, and one that is stopped.
started=$(milliseconds)
inside --timeout 300ms -- $load block-signals
check_equal 'all signals blocked' "$status" 124
inside --timeout 300ms -- sh -c 'kill -STOP $$; echo on'
check_equal 'stopped by itself' "$status" 124
took=$(($(milliseconds) - started))
check "neither takes its time ($took ms)" test "$took" -lt 5000
no_process 'who blocks signals'
expect_no_leaks 'nothing is left' "$before"
check_equal 'nor in the workspace' "$(ls -A "$ws")" ''
finish
