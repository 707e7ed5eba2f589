#!/usr/bin/env bash
# The commands of this folder still work: a few seconds of each, no figure is judged.
. "${STELLA_TEST_LIB:?run this test through meson test}/sh-lib.sh"
preflight root fuse || exit $?

bench=$STELLA_TEST_LIB/../bench
expect_status 0 bash "$bench/run" --smoke --dir "$tmp"
for row in $(bash "$bench/run" --list | grep -Ev '^(git-clone|git-status|make|sqlite|npm|grep-cold)$'); do
  expect_match out "^$row +[0-9]+[.][0-9]+ (us|ms|MB/s) +[0-9]+[.][0-9]+ "
done
expect_no_match err failed
expect_status 2 bash "$bench/run" --rows no-such-row --dir "$tmp"

expect_status 0 bash "$bench/run" --exec --smoke
for row in spawn exec run start end; do
  expect_match out "^$row +[0-9]+ us"
done
expect_match out '^bwrap +([0-9]+ us|not given)'
expect_match out '^throughput +[0-9]+ execs/s by 8 at once'
expect_match out '^sessions +[0-9]+ execs/s by 8 at once in 3 sessions'
expect_match out '^drain +[0-9]+ MiB/s'
expect_match out '^memory +[0-9]+ KiB private'
expect_match out '^growth +20 execs: .* [+]0 fds, [+]0 mounts, [+]0 processes$'

expect_status 0 bash "$bench/bench-scale" --files 1000 --limits 1024 --dir "$tmp"
expect_match out '^ +1024 +1000 +[0-9]+ +[0-9]+ +[0-9.]+ +1[.]00 '

if command -v valgrind >/dev/null; then
  expect_status 0 bash "$bench/callgrind" --count 20 --rows getattr --dir "$tmp"
  # so few operations count less than the start of one thread more or less
  expect_match out '^getattr +-?[0-9]+$'
else
  skip callgrind 'valgrind is not installed'
fi
check_equal "nothing is left behind" "$(ls "$tmp")" ''
finish
