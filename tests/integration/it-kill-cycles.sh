#!/usr/bin/env bash
# Runs are killed in some part of theirs at any moment, from the supervisor to the command's own init: no process,
# mount, FUSE connection, cgroup, temporary file or directory stays. STELLA_TEST_CYCLES says how many times (1,000 take
# some minutes), and each hundredth of the supervisor's start is one of its ends.
. "${STELLA_TEST_LIB:?run this test through meson test}/sh-lib.sh"
preflight root fuse || exit $?

mkdir "$tmp/ws" "$tmp/tmp"
export TMPDIR=$tmp/tmp
list_leaks >/dev/null # shows the FUSE connections from now on
cycles=${STELLA_TEST_CYCLES:-60}
seed=${STELLA_TEST_SEED:-20250}
check "$cycles killed runs leave nothing" kill-cycles --cycles "$cycles" --seed "$seed" \
  --points "$((cycles >= 100 ? 100 : 10))" --fail-nth "$STELLA_TEST_TOOLS/fail-nth" -- \
  "$EXEC" run --workspace "$tmp/ws" --timeout 10 -- \
  sh -c 'setsid sleep 300 & trap "" TERM HUP INT; echo x >/workspace/f; cat /workspace/f; sleep 0.03; rm -f /workspace/f'
finish
