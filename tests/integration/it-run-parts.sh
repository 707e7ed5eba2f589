#!/usr/bin/env bash
# A part of a run is killed, or stops: what belongs to it dies, what is waited for is waited for so long, and it is said.
. "${STELLA_TEST_LIB:?run this test through meson test}/sh-lib.sh"
preflight root fuse || exit $?

ws=$tmp/ws
mkdir "$ws" "$tmp/other"
cd "$ws"
expect_status 0 "$EXEC" run -- true
before=$(list_leaks)

# start_run COMMAND [OPTION...]: in the background, until the command says that it is there. $supervisor, $gateway, $init
start_run() {
  local command=$1
  shift
  rm -f "$ws/up"
  background "$EXEC" run "$@" -- sh -c "$command" </dev/null >"$tmp/run.out" 2>"$tmp/run.err"
  supervisor=$background_pid
  wait_for 10 test -e "$ws/up" || fail "the run did not start: $command" "$(cat "$tmp/run.err")"
  gateway=$(pgrep -P "$supervisor" -x stella-fsgate)
  init=$(pgrep -P "$supervisor" -x stella-sandbox-)
}

# end_run STATUS SECONDS WHAT: it ends so, in that time.
end_run() {
  local begun=${EPOCHREALTIME/[.,]/} result=0
  if ! wait_for "$2" has_ended "$supervisor"; then
    fail "$3: it did not end within $2 s"
    kill -KILL "$supervisor"
  fi
  wait "$supervisor" 2>/dev/null || result=$?
  check_equal "$3 (after $(((${EPOCHREALTIME/[.,]/} - begun) / 1000)) ms)" "$result" "$1"
}

has_ended() {
  ! kill -0 "$1" 2>/dev/null || grep -q '^State:.Z' "/proc/$1/status" 2>/dev/null
}

no_process() {
  [ -z "$(pgrep -x 'stella-.*|sleep' || true)" ]
}

kill_supervisor() { # WHAT
  kill -KILL "$supervisor"
  wait "$supervisor" 2>/dev/null || true
  if wait_for "${2:-1}" no_process; then
    pass "$1: every process dies with the supervisor"
  else
    fail "$1: processes outlive the supervisor" "$(ps -eo pid,ppid,stat,args)"
  fi
  check_equal "$1: its directory waits for the next start" "$(find "$STELLA_STATE_DIR/sessions" -name '*.lock' | wc -l)" 1
  expect_status 0 "$EXEC" run -- true
  expect_no_leaks "$1: the next start removes what is left" "$before"
}

# The supervisor dies, whatever the command is doing.
start_run 'setsid sleep 300 & touch up; sleep 300'
kill_supervisor 'a command with a daemon'
start_run 'trap "" TERM HUP INT QUIT; touch up; while :; do sleep 0.1; done'
kill_supervisor 'a command that ignores signals'
start_run 'setsid sh -c "kill -STOP \$\$" & touch up; kill -STOP $$'
kill_supervisor 'a command that stopped itself'
: >"$ws/wait"
start_run 'touch up; while test -e wait; do :; done; cat f; sleep 300'
kill -STOP "$gateway"
sleep 0.2 # it hangs in the gateway by now: every look-up is asked for
kill_supervisor 'a command that hangs in a stopped gateway' 5
rm "$ws/wait"

# The same with those that stay: they go with a clean end too.
start_run 'setsid sleep 300 & trap "" TERM; touch up; sleep 300' --kill-after 100ms
kill -TERM "$supervisor"
end_run 143 10 'a command that ignores SIGTERM is killed'
expect_no_leaks 'nothing of it is left' "$before"

# A gateway that stops in mid-run: the deadline holds, and others are not held up.
start_run 'touch up; while :; do test -e f; done' --timeout 2s
kill -STOP "$gateway"
run timeout 5 "$EXEC" run --workspace "$tmp/other" -- sh -c 'echo there >f; cat f'
check_equal 'another session works meanwhile' "$status $out" '0 there'
end_run 124 12 'the deadline of a run whose gateway stopped'
expect_no_leaks 'nothing of it is left' "$before"

start_run 'touch up; while :; do test -e f; done' --kill-after 200ms
kill -STOP "$gateway"
kill -TERM "$supervisor"
end_run 143 12 'a signal ends a run whose gateway stopped'
expect_no_leaks 'nothing of it is left either' "$before"

# ... and from the start: the session is never made, in bounded time.
rm -f "$ws/up"
# LeakSanitizer does not work in a process that is traced.
ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0 fail-nth --role gateway --stop 1 --seconds 40 --report "$tmp/report" -- \
  "$EXEC" run --timeout 1s -- sh -c 'touch up' </dev/null >"$tmp/run.out" 2>"$tmp/run.err" &
supervisor=$!
test_pids+=("$supervisor")
wait_for 10 grep -q '^failed gateway' "$tmp/report" || fail 'the gateway was not stopped'
run timeout 5 "$EXEC" run --workspace "$tmp/other" -- true
check_equal 'another session starts meanwhile' "$status" 0
end_run 125 25 'a gateway that stops from the start is given up'
check_equal 'that is said' "$(grep -c '^stella-exec: the gateway was not ready within 15 s$' "$tmp/run.err")" 1
check_not 'nothing was run' test -e "$ws/up"
expect_no_leaks 'nothing is left of that' "$before"

# A gateway that dies in mid-run: reads and writes fail, the run ends, and why is said.
start_run 'touch up; while cat up; do :; done 2>&1; echo "ended with it" ; sleep 300'
kill -KILL "$gateway"
end_run 125 5 'a run whose gateway died'
check_equal 'why is said' "$(grep -c '^stella-exec: the gateway has ended while the command ran' "$tmp/run.err")" 1
expect_no_leaks 'nothing of it is left' "$before"
start_run 'touch up; while cat up >/dev/null; do :; done; sleep 300' --json
kill -KILL "$gateway"
end_run 125 5 'the same as JSON'
check_equal 'the object says so' "$(grep -c '"code": "session-closed", "stage": "finish"' "$tmp/run.out")" 1

# So with init, and with the command's init.
start_run 'touch up; sleep 300'
kill -KILL "$init"
end_run 125 5 'a run whose init died'
check_equal 'why is said' "$(grep -c '^stella-exec: the sandbox has ended while the command ran' "$tmp/run.err")" 1
start_run 'touch up; sleep 300'
kill -KILL "$(pgrep -P "$init")"
end_run 125 5 'a run whose exec init died, and the session not'
check_equal 'why is said' "$(grep -c "^stella-exec: the command's init has ended while it ran" "$tmp/run.err")" 1
expect_no_leaks 'nothing is left' "$before"
finish
