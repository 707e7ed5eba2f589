#!/usr/bin/env bash
# Fifty runs, every third killed with SIGKILL at some moment between its start and its end: no mount, process, FUSE
# connection or directory stays. What a killed run leaves is removed by itself or by the next start.
. "${STELLA_TEST_LIB:?run this test through meson test}/sh-lib.sh"
preflight root fuse || exit $?

RUNS=${STELLA_TEST_RUNS:-50}
mkdir "$tmp/ws"
expect_status 0 "$EXEC" run --workspace "$tmp/ws" -- true
before=$(list_leaks)
started=${EPOCHREALTIME/[.,]/}
run "$EXEC" run --workspace "$tmp/ws" -- true
whole=$(((${EPOCHREALTIME/[.,]/} - started) / 1000)) # ms, from start to end

ended=0 killed=0
for ((i = 1; i <= RUNS; i++)); do
  if ((i % 3 != 0)); then
    run "$EXEC" run --workspace "$tmp/ws" -- sh -c 'echo ran; setsid sleep 300 &'
    [ "$status $out" = "0 ran" ] || fail "run $i" "$status $out $err"
    ended=$((ended + 1))
    continue
  fi
  # Stages of the start first, then while the command runs.
  "$EXEC" run --workspace "$tmp/ws" -- sh -c 'setsid sleep 300 & sleep 300' </dev/null >/dev/null 2>&1 &
  pid=$!
  test_pids+=("$pid")
  sleep "0.$(printf %03d $(((i * 37) % (whole * 2 + 1))))"
  kill -KILL "$pid" || fail "run $i ended by itself"
  wait "$pid" 2>/dev/null || true
  killed=$((killed + 1))
done
check "$ended runs ended, $killed were killed" test "$killed" -gt 0
run "$EXEC" run --workspace "$tmp/ws" -- true # the next start cleans up
expect_no_leaks "nothing is left of them" "$before"
check_equal "no process of a command is left" "$(pgrep -cx sleep || true)" 0
finish
