#!/usr/bin/env bash
# The examples, from the build directory: what they print is what their reader is told.
#
# shellcheck disable=SC1091,SC2154 # what sh-lib.sh sets
. "${STELLA_TEST_LIB:?run this test through meson test}/sh-lib.sh"
preflight root fuse || exit $?
. "$STELLA_TEST_LIB/../integration/examples-lib.sh"

libraries=$STELLA_TEST_BUILD/include
LIBSTELLA=$libraries/libstella-sandbox.so.0
export LIBSTELLA
# the first session makes the state directory
expect_status 0 "$EXEC" run -- true
before=$(list_leaks)
run_examples "$STELLA_TEST_BUILD/tests/examples"
expect_no_leaks 'nothing is left' "$before"
finish
