#!/usr/bin/env bash
# An installation as a host agent's programmer finds it: what is in it, the examples compiled outside the tree by pkg-config, against the
# shared library and against the static one, and run with the installed programs.
#
# The prefix is covered in a mount namespace of the test's own, so that nothing is installed on this machine.
#
# shellcheck disable=SC1091,SC2154,SC2046,SC2086 # what sh-lib.sh sets; options of a compiler are words
. "${STELLA_TEST_LIB:?run this test through meson test}/sh-lib.sh"
preflight root fuse || exit $?
. "$STELLA_TEST_LIB/../integration/examples-lib.sh"

prefix=${STELLA_TEST_PREFIX:?}
libdir=$prefix/${STELLA_TEST_LIBDIR:?}
cc=${CC:-cc}
cp -r "$STELLA_TEST_LIB/../examples" "$tmp/outside"

echo '--- what is installed'
check 'meson install' meson install -C "$STELLA_TEST_BUILD" --no-rebuild --quiet --destdir "$tmp/dest"
check 'the prefix can be covered' test -d "$prefix"
mount --bind "$tmp/dest$prefix" "$prefix"
for file in "$prefix"/bin/stella-{exec,fsgate} "$libdir"/libstella-sandbox.{so,so.0,a} "$libdir/pkgconfig/stella-sandbox.pc" \
  "$prefix/include/stella/stella.h" "$prefix"/share/man/man1/stella-{exec,fsgate}.1 "$prefix/share/man/man5/stella-policy.5" \
  "$prefix"/share/stella-sandbox/{policy,result}.schema.json; do
  check "${file#"$prefix"/}" test -s "$file"
done
check_equal 'every header' "$(ls "$prefix/include/stella")" "$(cd "$STELLA_TEST_LIB/../../include/stella" && ls -- *.h)"
check_not 'no path of the build directory in what is installed for others' \
  grep -rlF "$STELLA_TEST_BUILD" "$prefix/include" "$libdir/pkgconfig" "$prefix/share"

export PKG_CONFIG_PATH=$libdir/pkgconfig
cd "$tmp/outside" || exit 1

# the built programs are out of reach: what runs is what was installed
mkdir "$tmp/empty"
mount --bind "$tmp/empty" "$STELLA_TEST_BUILD/executor"
mount --bind "$tmp/empty" "$STELLA_TEST_BUILD/fsgate"

echo '--- against the shared library'
mkdir shared
for source in *.c; do
  check "compile $source" $cc -Wall -Werror ${STELLA_TEST_CFLAGS:-} -o "shared/${source%.c}" "$source" \
    $(pkg-config --cflags --libs stella-sandbox)
done
export LD_LIBRARY_PATH=$libdir LIBSTELLA=$libdir/libstella-sandbox.so.0
run_examples "$tmp/outside/shared"

echo '--- against the static library'
mkdir static
rm -f "$libdir"/libstella-sandbox.so*
for source in *.c; do
  check "compile $source" $cc -Wall -Werror ${STELLA_TEST_CFLAGS:-} -o "static/${source%.c}" "$source" \
    $(pkg-config --cflags --libs --static stella-sandbox)
done
check_not 'no shared library of ours is asked for' grep -q libstella-sandbox <(ldd static/three-commands)
expect_status 0 static/three-commands "$tmp/ws"
expect_match out '^HELLO$'
expect_status 0 static/file-tools "$tmp/ws" list .
finish
