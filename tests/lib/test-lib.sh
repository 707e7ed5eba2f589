# shellcheck shell=bash
# shellcheck disable=SC1091,SC2016,SC2154 # scripts in single quotes; variables of sh-lib.sh
#
# The ground that integration tests stand on: sh-lib.sh counts failures and never hides one, cleans up,
# and sees leaks; as-user, deny-syscall and preflight do what they say.
. "${STELLA_TEST_LIB:?run this test through meson test}/sh-lib.sh"
preflight root fuse userns seccomp || exit $?

# A small test, run by itself; its temporary directory is below ours, so that leftovers show.
mkdir "$tmp/inner"
script() {
  printf '. "$STELLA_TEST_LIB/sh-lib.sh"\n%s\n' "$1" >"$tmp/inner-test.sh"
  run env -u STELLA_TESTS_MUST_RUN TMPDIR="$tmp/inner" ${2:+"$2"} bash "$tmp/inner-test.sh"
}

script 'check one true; check_not two false; check_equal three a a; finish'
check_equal 'a test that passes' "$status" 0
expect_line out '3 passed, 0 failed, 0 skipped'

script 'check one true; check two false; finish'
check_equal 'one failure fails the test' "$status" 1
expect_line out '1 passed, 1 failed, 0 skipped'

script 'check_not one true; check_not two nonexistent-program; check_equal three a b; finish'
expect_line out '0 passed, 3 failed, 0 skipped'

script 'check one true'
check_equal 'a test without finish fails' "$status" 1
expect_line out 'FAIL: the test ended early, with status 0'

script 'check one true; false; finish'
check_equal 'a command that fails ends the test' "$status" 1
expect_line out 'FAIL: the test ended early, with status 1'

script 'finish'
check_equal 'a test that checked nothing is skipped' "$status" 77
script 'preflight root || exit $?; exit 77'
check_equal "preflight's status is passed on" "$status" 77
script 'check one true; skip two "not here"; finish'
check_equal 'one skipped part is no skipped test' "$status" 0
expect_line out '1 passed, 0 failed, 1 skipped'
script 'check one true; skip two "not here"; finish' STELLA_TESTS_MUST_RUN=1
check_equal 'what must run and cannot is a failure' "$status" 1

script 'expect_status 3 sh -c "echo a b; echo c >&2; exit 3"; expect_line out "a b"; expect_match err "^c"
  expect_one_line out; expect_no_match out c; finish'
expect_line out '5 passed, 0 failed, 0 skipped'
script 'expect_status 0 sh -c "echo a b; echo c; exit 3"; expect_line out "a"; expect_match out "^d"
  expect_one_line out; expect_no_match out c; finish'
expect_line out '0 passed, 5 failed, 0 skipped'

script 'mkdir "$tmp/m"; mount -t tmpfs none "$tmp/m"; check one true; finish'
check_equal 'a mount that is left fails the test' "$status" 1
script 'background sleep 1000; setsid sleep 1001 & check one true; finish'
check_equal 'a process that is left' "$status" 0
check_not 'is ended with the test' grep -sqxE 'sleep.100[01].' /proc/[0-9]*/cmdline
check_equal 'nothing is left of all these tests' "$(ls -A "$tmp/inner")" ''

script '(sleep 0.2; : >"$tmp/x") & check_not early test -e "$tmp/x"; check late wait_for 5 test -e "$tmp/x"
  check_not never wait_for 1 test -e "$tmp/y"; finish'
check_equal 'waiting ends when it happens, and when it does not' "$status" 0

# snapshot notices every kind of change
mkdir -p "$tmp/tree/d"
echo content >"$tmp/tree/d/f"
ln -s f "$tmp/tree/d/l"
before=$(snapshot "$tmp/tree")
cat "$tmp/tree/d/f" >/dev/null
expect_unchanged 'reading changes no snapshot' "$tmp/tree" "$before"
changes=(
  'echo CONTENT >d/f'
  'touch -d 2001-01-01T00:00:00.000000001 d/f'
  'chmod 600 d/f; chmod 644 d/f'
  'chown 1000 d/f'
  'ln -sfn g d/l'
  'ln d/f d/h'
  'mkfifo d/p'
  'rm d/p'
  'setfattr -n user.x -v 1 d/f'
)
for change in "${changes[@]}"; do
  case $change in
  setfattr*) command -v setfattr >/dev/null || continue ;;
  esac
  (cd "$tmp/tree" && eval "$change")
  after=$(snapshot "$tmp/tree")
  check "noticed: $change" test "$after" != "$before"
  before=$after
done

# leaks
before=$(list_leaks)
expect_no_leaks 'nothing has leaked yet' "$before"
mkdir -p "$STELLA_STATE_DIR/session" "$tmp/fuse"
cp "$(command -v sleep)" "$tmp/stella-sleep"
background "$tmp/stella-sleep" 1000
# a mount that nobody serves is a mount all the same; of a user as sandboxes have it
exec 9<>/dev/fuse
mount -i -t fuse.test -o fd=9,rootmode=40000,user_id=1900000001,group_id=1900000001 none "$tmp/fuse"
wait_for 5 grep -q stella-sleep "/proc/$background_pid/comm"
leaks=$(new_leaks "$before")
for kind in mount connection process state; do
  check "a leaked $kind is seen" grep -q "^$kind " <<<"$leaks"
done
# in this order: as long as the device is open, umount(8) waits for somebody to answer its stat
exec 9<&-
umount "$tmp/fuse"
kill -KILL "$background_pid"
wait "$background_pid" 2>/dev/null || true
rmdir "$STELLA_STATE_DIR/session"
expect_no_leaks 'and gone again' "$before"

# the programs
expect_status 0 as-user --home "$tmp/home" 1234 -- sh -c \
  'id -u; id -g; id -G; echo "$HOME"; test -w /dev/fuse && echo may open; grep CapEff /proc/self/status'
check_equal 'as-user: ids, home, device, no capabilities' "$out" \
  "$(printf '1234\n1234\n1234\n%s\nmay open\nCapEff:\t0000000000000000' "$tmp/home")"
expect_status 0 as-user 1234 -- preflight fuse userns seccomp
expect_status 77 env -u STELLA_TESTS_MUST_RUN as-user 1234 -- preflight root
expect_status 1 env STELLA_TESTS_MUST_RUN=1 as-user 1234 -- preflight root
expect_match err '^preflight: root: '
expect_status 1 preflight no-such-need
expect_status 127 as-user 1234 -- /nonexistent
expect_status 125 as-user root -- true
check 'the node is not seen outside' test "$(stat -c %m /dev/fuse)" != /dev/fuse

expect_status 1 deny-syscall mkdir,mkdirat EROFS -- mkdir "$tmp/denied"
expect_match err 'Read-only file system'
expect_status 0 deny-syscall rmdir,unlinkat EROFS -- mkdir "$tmp/allowed"
expect_status 0 deny-syscall openat2 ENOSYS -- grep -q 'NoNewPrivs:.0' /proc/self/status
expect_status 0 as-user 1234 -- deny-syscall openat2 ENOSYS -- grep -q 'NoNewPrivs:.1' /proc/self/status
expect_status 77 env -u STELLA_TESTS_MUST_RUN deny-syscall openat2 38 -- preflight openat2
expect_status 125 deny-syscall no_such_call ENOSYS -- true
expect_status 125 deny-syscall mkdir ENOSUCH -- true
expect_status 127 deny-syscall mkdir ENOSYS -- /nonexistent

finish
