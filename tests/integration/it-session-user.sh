#!/usr/bin/env bash
# The sessions' tests once more, as an ordinary user who may open /dev/fuse: user namespace, id map and
# FUSE mount without any privilege.
. "${STELLA_TEST_LIB:?run this test through meson test}/sh-lib.sh"
preflight root fuse || exit $?

export TMPDIR=$tmp
chmod 1777 "$tmp"
for name in api-async api-paths api-process api-session attack-start changes changes-execs session session-exec session-life session-live session-spill session-terminal \
  session-threads terminal; do
  expect_status 0 as-user --home "$tmp/home" 1234 -- "$STELLA_TEST_BUILD/tests/integration/it-$name"
done
for name in api-factory api-resilient; do
  expect_status 0 as-user --home "$tmp/home" 1234 -- "$STELLA_TEST_BUILD/tests/integration/it-$name"
done
finish
