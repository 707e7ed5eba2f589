#!/usr/bin/env bash
# stella-exec run and sh, from the outside: what a command sees, what comes out of it, how it ends, and
# that nothing of it stays.
#
# shellcheck disable=SC1091,SC2016,SC2154 # what sh-lib.sh sets; texts that the inner shell expands
. "${STELLA_TEST_LIB:?run this test through meson test}/sh-lib.sh"
preflight root fuse || exit $?

# A place of the host that no sandbox has one of its own at, as it has /tmp.
mount -t tmpfs -o mode=755 none /srv
ws=$tmp/ws
mkdir "$ws" "$tmp/lib" "$tmp/empty" /srv/bin /srv/ws
expect_status 0 "$EXEC" run --workspace "$ws" -- true
before=$(list_leaks)
chown 1234:1235 "$ws"
cd "$ws" || exit 1

# The first promise: a directory, a command in its view, the file on the host.
expect_status 0 "$EXEC" run --workspace "$ws" -- sh -c 'echo hi > /workspace/f && cat /workspace/f && ls /'
expect_line out hi
expect_line out workspace
check_equal 'nothing on stderr with success' "$err" ''
check_equal 'the file is on the host' "$(cat "$ws/f")" hi
check_equal 'and belongs to the owner of the workspace' "$(stat -c %u:%g "$ws/f")" 1234:1235
rm "$ws/f"
expect_status 0 "$EXEC" run pwd
expect_line out /workspace
expect_status 0 "$EXEC" sh 'pwd; echo $HOME; touch $HOME/x && ls /user'
expect_line out /user
expect_line out x

# Read-only mounts, and the same with rw.
echo secret >"$tmp/lib/file"
chown -R 1234:1235 "$tmp/lib"
tree=$(snapshot "$tmp/lib")
for write in 'echo x > /opt/stella/file' 'echo x > /opt/stella/new' 'rm /opt/stella/file' 'mkdir /opt/stella/d' \
  'chmod 777 /opt/stella/file' 'mv /opt/stella/file /workspace/' 'touch /opt/stella/file'; do
  run "$EXEC" run --ro "$tmp/lib:/opt/stella" -- sh -c "$write"
  check "refused: $write" test "$status" != 0 -a "$status" -lt 124
  expect_match err 'Read-only file system'
  rm -f "$ws/file"
done
expect_unchanged 'the read-only tree is as it was' "$tmp/lib" "$tree"
expect_status 0 "$EXEC" run --ro "$tmp/lib:/opt/stella" -- cat /opt/stella/file
expect_line out secret
expect_status 0 "$EXEC" run --rw "$tmp/lib:/opt/stella" -- sh -c 'echo x > /opt/stella/new'
check_equal 'a writable mount is written to' "$(cat "$tmp/lib/new")" x

# What is outside does not exist; what the view has does.
for path in /etc/shadow /root /home "$tmp/lib/file" "$tmp"; do
  run "$EXEC" run -- ls -d "$path"
  check_equal "absent inside: $path" "$status" 2
  expect_match err 'No such file or directory'
done
expect_status 0 "$EXEC" run -- ls -d /etc/passwd /usr/bin /tmp /workspace
ln -s "$tmp/lib/file" out
ln -s in-target in
echo inside >in-target
expect_status 1 "$EXEC" run -- cat out
expect_status 0 "$EXEC" run -- cat in
expect_line out inside
# symlinks: deny. The command itself is found through links of the host's.
chown -h 1234:1235 in-target
for use in 'cat in' 'readlink in' 'echo x >out' 'cd /tmp; mkdir d; ln -s d l; ls l/'; do
  run "$EXEC" run --symlinks deny -- sh -c "$use"
  check "denied: $use" test "$status" != 0 -a "$status" -lt 124
  expect_status 0 "$EXEC" run --symlinks contained -- sh -c "${use/>out/>in; echo inside >in}"
done
expect_status 0 "$EXEC" run --symlinks deny -- sh -c 'ls -l /bin /usr/bin/sh /etc >/dev/null; ln -s x l; mv l m; test -L m; rm m'
check_equal 'what the links lead to is as it was' "$(cat in "$tmp/lib/file")" "$(printf 'inside\nsecret')"
rm out in in-target

# Streams.
check_equal 'input passes' "$(printf abc | "$EXEC" run -- tr a-c x-z)" xyz
check_equal 'large output is exact' "$("$EXEC" run -- head -c 20000000 /dev/zero | wc -c)" 20000000
check_equal 'large input is exact' "$(head -c 20000000 /dev/zero | "$EXEC" run -- wc -c)" 20000000
check_equal 'through both, by content' \
  "$(seq 500000 | "$EXEC" run -- cat | sha256sum)" "$(seq 500000 | sha256sum)"
check_equal 'a closed consumer ends the command' "$(timeout 20 "$EXEC" run -- yes | head -1 || true)" y
expect_status 125 timeout 20 sh -c '"$1" run -- yes >/dev/full' sh "$EXEC"
expect_line err 'stella-exec: standard output: No space left on device'
expect_status 0 "$EXEC" run -- sh -c 'echo out; echo err >&2'
check_equal 'stdout apart' "$out" out
check_equal 'stderr apart' "$err" err
# A directory as stdin, stdout closed, stdin closed: no way to the host, and no hang.
expect_status 0 timeout 20 "$EXEC" run -- sh -c 'readlink /proc/self/fd/0; ls /proc/self/fd/0/; cat; true' </
expect_match out '^pipe:'
expect_no_match out '^(etc|root|usr)$'
expect_status 0 timeout 20 "$EXEC" run -- sh -c 'cat; echo end' <&-
expect_line out end
expect_status 0 timeout 20 "$EXEC" run -- sh -c 'for f in /proc/self/fd/[0-2]; do readlink $f; done; ls /proc/self/fd'
check_equal 'all three are pipes' "$(grep -c '^pipe:' "$out_file")" 3
expect_status 0 timeout 20 "$EXEC" run -- true </dev/zero
check_equal 'nothing but what commands made is in the workspace' "$(ls -A "$ws")" ''

# Ends.
for code in 0 1 3 124 125 126 127 255; do
  expect_status "$code" "$EXEC" run -- sh -c "exit $code"
done
expect_status 137 "$EXEC" run -- sh -c 'kill -KILL $$'
expect_status 143 "$EXEC" run -- sh -c 'kill -TERM $$'
expect_status 127 "$EXEC" run -- no-such-program
expect_one_line err
expect_match err '^stella-exec: .*no-such-program.*: No such file or directory'
printf 'not a program\n' >plain
expect_status 126 "$EXEC" run -- ./plain
expect_one_line err
expect_status 126 "$EXEC" run -- /workspace
rm plain
printf '#!/bin/sh\necho found\n' >/srv/bin/stella-only-here
chmod 755 /srv/bin/stella-only-here
PATH=$PATH:/srv/bin expect_status 127 "$EXEC" run -- stella-only-here
expect_one_line err
expect_match err '--ro /srv/bin/stella-only-here '
expect_status 0 "$EXEC" run --ro /srv/bin/stella-only-here -- /srv/bin/stella-only-here
expect_line out found

# Deadlines.
started=${EPOCHREALTIME/[.,]/}
expect_status 124 "$EXEC" run --timeout 1s -- sh -c 'setsid sleep 100 & sleep 100'
took=$((${EPOCHREALTIME/[.,]/} - started))
check 'a timeout takes its time and no more' test "$took" -ge 1000000 -a "$took" -lt 2000000
check_not 'no process of it is left' pgrep -x sleep
expect_status 0 "$EXEC" run --timeout 20s -- true
expect_status 124 "$EXEC" run --timeout 300ms -- sh -c "trap '' TERM INT HUP; kill -STOP \$\$"
# A consumer that has stopped reading does not hold up a deadline.
mkfifo "$tmp/stalled"
exec 8<>"$tmp/stalled"
expect_status 124 timeout -s KILL 20 sh -c 'exec "$1" run --timeout 500ms -- yes >"$2"' sh "$EXEC" "$tmp/stalled"
exec 8<&-

# Signals. Not SIGINT: a shell's background jobs have it ignored, which has to stay so.
# signal_run SIGNALS OPTIONS... -- COMMAND: sends them once the command has made `ready`. Its status.
signal_run() {
  local signals=$1 result=0 pid signal
  shift
  rm -f "$ws/ready"
  "$EXEC" run "$@" &
  pid=$!
  test_pids+=("$pid")
  wait_for 10 test -e "$ws/ready" || return 99
  for signal in $signals; do
    kill "-$signal" "$pid"
    sleep 0.1
  done
  wait "$pid" || result=$?
  rm -f "$ws/ready"
  return "$result"
}
expect_status 7 signal_run TERM -- bash -c 'trap "exit 7" TERM; touch ready; while :; do sleep 0.05; done'
expect_status 129 signal_run HUP -- bash -c 'touch ready; exec sleep 100'
expect_status 0 signal_run INT -- bash -c 'touch ready; sleep 0.5'
expect_status 143 signal_run TERM --kill-after 300ms -- bash -c 'trap "" TERM; touch ready; while :; do sleep 0.05; done'
expect_status 129 signal_run 'TERM HUP' -- bash -c 'trap "" TERM HUP; touch ready; while :; do sleep 0.05; done'
expect_no_leaks 'signals leave nothing' "$before"

# sh, longer than one argument can be.
expect_status 0 "$EXEC" sh 'printf "%s-" a b; echo $#'
expect_line out a-b-0
expect_status 5 "$EXEC" sh --json 'exit 5'
{
  for ((i = 0; i < 20000; i++)); do echo ': filler filler filler'; done
    echo 'echo "$0 $# long"; cat; exit 6'
} >"$tmp/script"
expect_status 6 "$EXEC" sh - <"$tmp/script"
expect_line out 'sh 0 long'
echo given >"$tmp/input"
expect_status 6 "$EXEC" sh --stdin "$tmp/input" - <"$tmp/script"
expect_line out given

# The environment.
SECRET_TOKEN=x MINE=y expect_status 0 "$EXEC" run --setenv MINE --setenv A=1 --setenv B=2 --unsetenv B -- \
  sh -c 'echo "[$SECRET_TOKEN] [$MINE] [$A] [$B]"'
expect_line out '[] [y] [1] []'
printf '# a comment\nFROM_FILE=$x y\n' >"$tmp/env"
expect_status 0 "$EXEC" run --env-file "$tmp/env" -- sh -c 'echo "$FROM_FILE"'
expect_line out '$x y'
mkdir sub
expect_status 0 "$EXEC" run --cwd sub -- pwd
expect_line out /workspace/sub
expect_status 0 "$EXEC" run --cwd "$ws/sub" -- pwd
expect_line out /workspace/sub
expect_status 0 "$EXEC" run --workspace /srv/ws --same-path -- pwd
expect_line out /srv/ws
rmdir sub
# Also where the sandbox has a /tmp of its own.
mkdir "$tmp/same" "$tmp/seen"
echo seen >"$tmp/seen/f"
expect_status 1 "$EXEC" sh --workspace "$tmp/same" --same-path --ro "$tmp/seen" \
  "pwd; cat $tmp/seen/f; echo x >here; touch /tmp/own; ls $tmp; touch $tmp/seen/x 2>/dev/null || echo refused; mv $tmp /tmp/away 2>&1"
expect_line out "$tmp/same"
expect_line out seen
expect_line out refused
expect_match out 'cannot move .* Device or resource busy'
check_equal 'a mount below /tmp is the host directory' "$(cat "$tmp/same/here")" x
check_not 'and the rest of /tmp is the sandbox own' test -e /tmp/own

# Input that lies where commands write may be a link that one of them has planted.
echo secret >"$tmp/secret"
ln -s "$tmp/secret" planted
echo plain >plain
expect_status 125 "$EXEC" run --stdin planted -- cat
expect_match err '^stella-exec: --stdin "planted": Too many levels of symbolic links'
check_equal 'nothing of it is read' "$out" ''
expect_status 0 "$EXEC" run --stdin plain -- cat
expect_line out plain
ln -s "$tmp/secret" "$tmp/own-link"
expect_status 0 "$EXEC" run --stdin "$tmp/own-link" -- cat
expect_line out secret
rm planted plain

# The state directory, which a home directory contains, is not entered: other sessions are in it.
mkdir "$tmp/home"
(export STELLA_STATE_DIR=$tmp/home/.local/state/stella
  mkdir -p "$tmp/home/.local/state" "$tmp/home/beside"
  echo beside >"$tmp/home/beside/f"
  cd "$tmp/home"
  "$EXEC" run --workspace "$ws" -- sh -c 'echo other >/tmp/s; sleep 3' &
  other=$!
  wait_for 3 sh -c 'cat .local/state/stella/sessions/*/tmp/s 2>/dev/null | grep -qx other'
  "$EXEC" sh 'ls -A .local/state/stella; cat .local/state/stella/sessions/*/tmp/s; touch .local/state/stella/x;
    rm -rf .local 2>/dev/null; mv .local moved; cat beside/f' >"$tmp/.out" 2>"$tmp/.err"
  test -d .local/state/stella/sessions && echo kept >>"$tmp/.out"
  wait "$other") || fail 'a session beside another one'
check_equal 'nothing of it is seen, and it is kept' "$(cat "$tmp/.out")" "$(printf 'beside\nkept')"
expect_match err 'No such file or directory'
expect_match err 'Read-only file system'
expect_match err "cannot move '.local'.*Device or resource busy"
# A host directory far above does not take the working directory away.
expect_status 0 "$EXEC" run --ro /:/host -- pwd
expect_line out /workspace

# A process that the gateway does not answer, because a host process holds a lease, is not waited for when
# the command has ended.
echo leased >leased
cat >"$tmp/lease.py" <<'END'
import fcntl, signal, sys, time
signal.signal(signal.SIGIO, signal.SIG_IGN)
f = open(sys.argv[1], "r+")
fcntl.fcntl(f, fcntl.F_SETLEASE, fcntl.F_WRLCK)
print("held", flush=True)
time.sleep(100)
END
coproc lease { exec python3 "$tmp/lease.py" leased; }
lease_pid=$!
test_pids+=("$lease_pid")
read -r -t 10 line <&"${lease[0]}"
check_equal 'a host process holds a lease' "$line" held
started=$SECONDS
expect_status 3 "$EXEC" sh 'cat leased & sleep 0.3; exit 3'
check "it took $((SECONDS - started)) s" test $((SECONDS - started)) -lt 10
kill "$lease_pid"
wait "$lease_pid" || true
expect_status 0 "$EXEC" sh 'cat leased & wait'
expect_line out leased
rm leased

# The result.
expect_status 3 "$EXEC" run --json -- sh -c 'echo out; printf "\377" >&2; exit 3' <"$tmp/input"
expect_one_line out
expect_match out '"ended": "exited", "exit_code": 3, "signal": null, "stdout": "out\\n", "stdout_encoding": "utf-8"'
expect_match out '"stderr": "/w==", "stderr_encoding": "base64", "stderr_bytes": 1'
expect_match out '"session_id": "sandbox-[0-9a-f]{16}", "exec_id": 1'
expect_status 3 "$EXEC" run --json --lossy-text -- sh -c 'echo out; printf "\377" >&2; exit 3'
expect_one_line out
expect_match out '"stdout": "out\\n", "stdout_encoding": "utf-8"'
expect_match out '"stderr": "�", "stderr_encoding": "utf-8-lossy", "stderr_bytes": 1'
expect_match out '"writable": \["/tmp", "/user", .*"/workspace"\]|"writable": \[.*"/workspace".*"/tmp"'
expect_status 0 "$EXEC" run --json -- cat <"$tmp/input"
expect_match out '"stdout": ""'
expect_status 0 "$EXEC" run --json --stdin "$tmp/input" -- cat
expect_match out '"stdout": "given\\n"'
expect_status 0 "$EXEC" run --json --stdin - -- cat <"$tmp/input"
expect_match out '"stdout": "given\\n"'
expect_status 124 "$EXEC" run --json --timeout 300ms -- sh -c 'echo before; sleep 100'
expect_one_line out
expect_match out '"ended": "timed_out", "exit_code": null, .*"stdout": "before\\n"'
expect_status 137 "$EXEC" run --json -- sh -c 'kill -KILL $$'
expect_match out '"ended": "signaled", "exit_code": 137, "signal": "SIGKILL"'
expect_status 127 "$EXEC" run --json -- no-such-program
expect_one_line out
expect_match out '"ended": "start_failed", .*"error": \{"code": "program-not-found", "stage": "exec", "errno": "ENOENT"'
expect_status 0 "$EXEC" run --json --limit output_bytes=10 -- head -c 1000000 /dev/zero
expect_match out '"stdout_bytes": 1000000, "stdout_truncated": true'
expect_status 0 "$EXEC" run --json -- sh -c '(sleep 100 &) ; echo x'
expect_match out '"left_over_killed": [1-9]'
expect_status 4 "$EXEC" run --result "$tmp/result" -- sh -c 'echo live; exit 4'
expect_line out live
cp "$tmp/result" "$out_file"
expect_one_line out
expect_match out '"exit_code": 4, .*"stdout": "live\\n"'
check_equal 'no file beside the result' "$(find "$tmp" -maxdepth 1 -name '.stella-*')" ''

# Bad input: one line, the right status, nothing run, nothing left.
bad() { # STATUS PATTERN ARGUMENT...
  local expected=$1 pattern=$2
  shift 2
  expect_status "$expected" timeout 20 "$EXEC" "$@"
  expect_one_line err
  expect_match err "^stella-exec: $pattern"
  check_equal 'nothing on stdout' "$out" ''
}
bad 125 '.*--nope' run --nope -- touch ran
bad 125 '.*no program' run
bad 125 '.*' sh 'touch ran' more
bad 125 '.*--timeout' run --timeout 1x -- touch ran
bad 125 '.*No such file or directory' run --workspace "$tmp/missing" -- touch ran
bad 125 '.*"/x"|.*/x' run --ro "$tmp/lib:/x" --ro "$tmp/empty:/x" -- touch ran
bad 125 '.*missing.*No such file or directory' run --cwd missing -- touch ran
bad 125 '.*outside every mount' run --cwd /srv/bin -- touch ran
bad 125 '.*--stdin "/"' run --stdin / -- touch ran
bad 125 '.*--result' run --result "$tmp/missing/r" -- touch ran
bad 125 '.*--backend "nope": expected' run --backend nope -- touch ran
bad 125 '.*unknown command' frobnicate
echo '{"version": 1, "filesystem": {"working_dir": "/workspace", "wrong": 1}}' >"$tmp/policy"
bad 125 '.*filesystem.wrong' run --policy "$tmp/policy" -- touch ran
cat >"$tmp/policy" <<END
{"version": 1, "filesystem": {"working_dir": "/workspace", "ownership": "host",
 "mounts": [{"host_path": "$ws", "view_path": "/workspace", "access": "rw"}]}}
END
bad 125 'filesystem.ownership: "host" is for a mounted view' run --policy "$tmp/policy" -- touch ran
sed -i 's/"ownership": "host",//' "$tmp/policy"
expect_status 0 "$EXEC" run --policy "$tmp/policy" -- sh -c 'echo $HOME'
expect_line out /workspace
expect_status 125 "$EXEC" run --json --nope -- touch ran
expect_one_line out
expect_match out '"code": "request-invalid"'
check_not 'nothing of it ran' test -e "$ws/ran"

expect_no_leaks 'nothing is left of all this' "$before"

# All the same for an ordinary user.
as_user() { as-user --home "$tmp/home" 1234 -- "$@"; }
expect_status 0 as_user "$EXEC" run -- sh -c 'id -u; echo hi > /workspace/f && cat f'
expect_line out 1000
expect_line out hi
check_equal 'the file is theirs' "$(stat -c %u "$ws/f")" 1234
rm "$ws/f"
run as_user "$EXEC" run --ro "$tmp/lib:/opt/stella" -- sh -c 'echo x > /opt/stella/new'
check 'a read-only mount of theirs is one' test "$status" != 0 -a "$status" -lt 124
expect_match err 'Read-only file system'
expect_status 1 as_user "$EXEC" run -- cat /etc/shadow
expect_match err 'No such file or directory'
expect_status 124 as_user "$EXEC" run --timeout 500ms -- sh -c 'setsid sleep 100 & sleep 100'
expect_status 127 as_user "$EXEC" run -- no-such-program
check_equal 'what went in comes out' "$(seq 100000 | as_user "$EXEC" run -- cat | sha256sum)" "$(seq 100000 | sha256sum)"
check_equal 'no session of theirs is left' "$(ls -A "$tmp/home/state/sessions")" ''
expect_no_leaks 'nor anything else' "$before"

# Runs that are killed half way leave nothing either.
for ((i = 0; i < 12; i++)); do
  "$EXEC" run -- sh -c 'sleep 0.1; echo done' >/dev/null 2>&1 &
  pid=$!
  test_pids+=("$pid")
  if ((i % 3 == 0)); then
    sleep "0.0$((i % 10))"
    kill -KILL "$pid"
  fi
  wait "$pid" 2>/dev/null || true
done
expect_status 0 "$EXEC" run -- true
expect_no_leaks 'killed runs leave nothing, once the next one has run' "$before"

finish
