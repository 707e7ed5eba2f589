#!/usr/bin/env bash
# The table of paths once more as an ordinary user: user namespaces, and a view that fusermount3 mounts. That program wants a
# user with a name.
. "${STELLA_TEST_LIB:?run this test through meson test}/sh-lib.sh"
preflight root fuse || exit $?

export TMPDIR=$tmp
chmod 1777 "$tmp"
expect_status 0 as-user --home "$tmp/home" "$(id -u nobody)" -- "$STELLA_TEST_BUILD/tests/integration/it-doors"
finish
