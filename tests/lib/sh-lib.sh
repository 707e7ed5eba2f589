# Functions for integration tests in shell (bash). A test begins and ends so:
#
#   . "${STELLA_TEST_LIB:?run this test through meson test}/sh-lib.sh"
#   preflight root fuse || exit $?
#   ...
#   finish
#
# shellcheck shell=bash
# shellcheck disable=SC2034 # what is set here is for the tests
#
# Sourcing gives strict mode, an own directory $tmp, a state directory in it, and, for root, a mount and a
# pid namespace of the test's own: what the test leaves behind cannot outlive it, and what others on the
# machine do is not seen by it. The directory goes at the end; what is still mounted or running then is
# ended, and is a failure. A test that ends without `finish` has failed.

set -Eeuo pipefail

: "${STELLA_TEST_TOOLS:?run this test through meson test}"
: "${STELLA_TEST_BUILD:?run this test through meson test}"

# STELLA_TEST_ISOLATED is that pid 1's own: a test that runs another one makes a new one. What was ignored by whom the test
# was started (nohup) would be by all that it starts.
if [ "$(id -u)" = 0 ] && [ "${STELLA_TEST_ISOLATED:-}" != "$$" ]; then
  exec unshare --mount --pid --fork --kill-child=KILL --mount-proc --propagation private \
    env --default-signal=HUP,INT,QUIT,PIPE,TERM STELLA_TEST_ISOLATED=1 bash "$0" "$@"
fi

export LC_ALL=C.UTF-8
umask 022
PATH=$STELLA_TEST_TOOLS:$PATH

# The programs under test.
FSGATE=$STELLA_TEST_BUILD/fsgate/stella-fsgate
EXEC=$STELLA_TEST_BUILD/executor/stella-exec

tmp=$(mktemp -d "${TMPDIR:-/tmp}/stella-test.XXXXXX")
chmod 755 "$tmp"
export STELLA_STATE_DIR=$tmp/state

# What the command of the last expect_status or run printed, as files and as text, and its status.
out_file=$tmp/.out
err_file=$tmp/.err
out=
err=
status=0

tests_passed=0
tests_failed=0
tests_skipped=0
tests_finished=
test_pids=()

pass() {
  tests_passed=$((tests_passed + 1))
  printf 'ok: %s\n' "$1"
}

# fail WHAT [DETAIL]: counts and goes on.
fail() {
  tests_failed=$((tests_failed + 1))
  printf 'FAIL: %s\n' "$1"
  [ -z "${2:-}" ] || printf '%s\n' "$2" | sed 's/^/  | /'
}

# skip WHAT WHY: a failure when STELLA_TESTS_MUST_RUN=1.
skip() {
  if [ "${STELLA_TESTS_MUST_RUN:-}" = 1 ]; then
    fail "$1" "cannot be tested here: $2"
  else
    tests_skipped=$((tests_skipped + 1))
    printf 'skip: %s: %s\n' "$1" "$2"
  fi
}

# check WHAT COMMAND...: the command succeeds. check_not: it fails, by its own choice (status 1 to 125).
check() {
  local what=$1
  shift
  if "$@"; then pass "$what"; else fail "$what" "status $? of: $*"; fi
}

check_not() {
  local what=$1 result=0
  shift
  "$@" || result=$?
  if [ "$result" -gt 0 ] && [ "$result" -lt 126 ]; then
    pass "$what"
  else
    fail "$what" "status $result of: $*"
  fi
}

# check_equal WHAT ACTUAL EXPECTED
check_equal() {
  if [ "$2" = "$3" ]; then
    pass "$1"
  else
    fail "$1" "$(printf 'got:      %s\nexpected: %s' "$2" "$3")"
  fi
}

# run COMMAND...: keeps its output and status in $out, $err, $status; never fails.
run() {
  status=0
  "$@" >"$out_file" 2>"$err_file" || status=$?
  out=$(tr -d '\0' <"$out_file")
  err=$(tr -d '\0' <"$err_file")
}

# expect_status STATUS COMMAND...: runs it as `run` does.
expect_status() {
  local expected=$1
  shift
  run "$@"
  if [ "$status" = "$expected" ]; then
    pass "status $expected: ${*/#$STELLA_TEST_BUILD\//}"
  else
    fail "status $status, expected $expected: $*" "$(tail -n 20 "$out_file" "$err_file")"
  fi
}

# expect_line out|err LINE: that output has exactly this line. expect_match: one that this pattern
# (extended regular expression) matches. expect_no_match: none. expect_one_line: one line in all.
expect_line() {
  local file=$tmp/.$1
  if grep -Fxq -e "$2" "$file"; then
    pass "$1 has the line: $2"
  else
    fail "$1 has no line: $2" "$(tail -n 20 "$file")"
  fi
}

expect_match() {
  local file=$tmp/.$1
  if grep -Eaq -e "$2" "$file"; then
    pass "$1 matches: $2"
  else
    fail "$1 does not match: $2" "$(tail -n 20 "$file")"
  fi
}

expect_no_match() {
  local file=$tmp/.$1
  if grep -Eaq -e "$2" "$file"; then
    fail "$1 matches: $2" "$(tail -n 20 "$file")"
  else
    pass "$1 does not match: $2"
  fi
}

expect_one_line() {
  local file=$tmp/.$1
  if [ "$(wc -l <"$file")" = 1 ] && [ "$(tail -c 1 "$file" | od -An -c | tr -d ' ')" = '\n' ]; then
    pass "$1 is one line"
  else
    fail "$1 is not one line" "$(tail -n 20 "$file")"
  fi
}

# sanitized PROGRAM: whether it was built with a sanitizer, which needs memory and libraries of its own.
sanitized() {
  grep -aqE '__(asan|tsan)_init' "$1"
}

# without_bwrap: from here on this host has none, so that nothing runs commands where fsgate cannot. For root, in the
# test's own mount namespace.
without_bwrap() {
  local program
  for program in /usr/bin/bwrap /bin/bwrap /usr/local/bin/bwrap; do
    [ ! -x "$program" ] || mount --bind /dev/null "$program"
  done
}

# wait_for SECONDS COMMAND...: until the command succeeds; fails when it has not by then.
wait_for() {
  local deadline=$((${EPOCHREALTIME/[.,]/} + $1 * 1000000))
  shift
  until "$@"; do
    [ "${EPOCHREALTIME/[.,]/}" -lt "$deadline" ] || return 1
    sleep 0.05
  done
}

# background COMMAND...: runs it and leaves its pid in $background_pid; ended with the test.
background() {
  "$@" &
  background_pid=$!
  test_pids+=("$background_pid")
}

# snapshot DIR: a text that is the same as long as nothing below DIR (and DIR itself) has changed: type,
# mode, owner, links, size, mtime and ctime in nanoseconds, link target, xattrs, content. Reading the tree
# is no change.
snapshot() (
  cd "$1"
  find . -printf '%y %m %U:%G %n %s %T@ %C@ %p -> %l\0' | sort -z | tr '\n\0' '\1\n'
  find . -type f -print0 | sort -z | xargs -0r sha256sum -z -- | tr '\n\0' '\1\n'
  if command -v getfattr >/dev/null; then
    find . ! -type l -print0 | sort -z | xargs -0r getfattr -h -d -m - -e hex -- 2>/dev/null || true
  fi
)

# expect_unchanged WHAT DIR SNAPSHOT
expect_unchanged() {
  local now
  now=$(snapshot "$2")
  if [ "$now" = "$3" ]; then
    pass "$1"
  else
    fail "$1" "$(diff <(printf '%s\n' "$3") <(printf '%s\n' "$now") || true)"
  fi
}

# list_leaks: one line for each thing that a session makes and must take away again: FUSE mounts, FUSE
# connections (of the whole machine: those have no namespace), processes of ours, directories below the
# state directory. count_leaks: how many.
list_leaks() {
  local entry comm
  awk '{ for (i = 7; $i != "-"; i++); if ($(i + 1) ~ /^fuse($|[.])/) print "mount", $5 }' \
    /proc/self/mountinfo
  if [ "$(id -u)" = 0 ] && ! mountpoint -q /sys/fs/fuse/connections; then
    # in the test's own mount namespace
    mount -t fusectl fusectl /sys/fs/fuse/connections || echo 'connections cannot be seen'
  fi
  # Of those that sandboxes of root made, whose users are 1900000000 and up: others come and go with other
  # programs of the machine.
  for entry in /sys/fs/fuse/connections/*; do
    if [ -d "$entry" ] && [ "$(stat -c %u "$entry" 2>/dev/null || echo 0)" -ge 1900000000 ]; then
      echo "connection ${entry##*/}"
    fi
  done
  for entry in /proc/[0-9]*; do
    comm=$(cat "$entry/comm" 2>/dev/null) || continue
    # a program's name is cut to 15 characters; a zombie is left to its parent for the moment
    case $comm in
    stella-*) grep -q '^State:.Z' "$entry/status" 2>/dev/null || echo "process ${entry#/proc/} $comm" ;;
    esac
  done
  # the directory of the views' sockets stays, sockets in it do not
  [ ! -d "$STELLA_STATE_DIR" ] ||
    find "$STELLA_STATE_DIR" -mindepth 1 \( -type d ! -path "$STELLA_STATE_DIR/views" -o -type s \) -printf 'state %P\n'
}

count_leaks() {
  list_leaks | wc -l
}

new_leaks() {
  comm -13 <(printf '%s\n' "$1" | sort) <(list_leaks | sort)
}

no_new_leaks() {
  [ -z "$(new_leaks "$1")" ]
}

# expect_no_leaks WHAT BEFORE: within five seconds nothing is there that list_leaks did not give BEFORE.
expect_no_leaks() {
  if wait_for 5 no_new_leaks "$2"; then
    pass "$1"
  else
    fail "$1" "$(new_leaks "$2")"
  fi
}

# gateway_of MOUNTPOINT: the pid of the gateway that serves it now. Not by name: the one before it may still be ending.
gateway_of() {
  "$FSGATE" status --json "$1" | sed -n 's/^.*"state":"serving","reason":null,"version":"[^"]*","pid":\([0-9]*\),.*$/\1/p'
}

mounts_below() {
  awk -v dir="$1/" 'index($5 "/", dir) == 1 { print $5 }' /proc/self/mountinfo | tac
}

test_cleanup() {
  local result=$? pid mountpoint
  trap - EXIT
  set +e
  for pid in "${test_pids[@]}"; do
    kill -KILL "$pid" 2>/dev/null && wait "$pid" 2>/dev/null
  done
  while read -r mountpoint; do
    fail "left mounted: $mountpoint"
    mountpoint=$(printf '%b' "$mountpoint")
    timeout -s KILL 10 umount -l "$mountpoint" || timeout -s KILL 10 fusermount3 -uz "$mountpoint"
  done < <(mounts_below "$tmp")
  cd /
  rm -rf --one-file-system "$tmp" || fail "could not be removed: $tmp"
  if [ -z "$tests_finished" ]; then
    # 77 before anything was checked is preflight's
    [ "$result" != 77 ] || [ "$((tests_passed + tests_failed))" != 0 ] || exit 77
    fail "the test ended early, with status $result"
  fi
  printf '%d passed, %d failed, %d skipped\n' "$tests_passed" "$tests_failed" "$tests_skipped"
  [ "$tests_failed" = 0 ] || exit 1
  [ "$tests_passed" != 0 ] || exit 77
  exit 0
}

trap test_cleanup EXIT
trap 'exit 143' TERM
trap 'exit 130' INT
trap 'printf "line %s: status %s: %s\n" "$LINENO" "$?" "$BASH_COMMAND" >&2' ERR

# The last line of every test.
finish() {
  tests_finished=1
  exit 0
}
