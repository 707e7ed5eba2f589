# What the commands of this folder share: options, mounted file systems side by side, and their ends.
#
# shellcheck shell=bash
# shellcheck disable=SC2034 # what is set here is for the commands
#
# As root everything happens in a mount and a pid namespace of its own: what is mounted or started here cannot
# outlive it. A file system under test is a directory $work/NAME with its source in $work/src/NAME, and is used with
# `in_system NAME COMMAND...`.

set -Eeuo pipefail

if [ "$(id -u)" = 0 ] && [ "${STELLA_BENCH_ISOLATED:-}" != "$$" ]; then
  exec unshare --mount --pid --fork --kill-child=KILL --mount-proc --propagation private \
    env STELLA_BENCH_ISOLATED=1 bash "$0" "$@"
fi

export LC_ALL=C.UTF-8
umask 022

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
build=${STELLA_TEST_BUILD:-$here/../../build}
base=/var/tmp
hp=
USER_ID=1 # daemon: fusermount3 wants a user that has a name

die() {
  printf '%s: %s\n' "$(basename "$0")" "$*" >&2
  exit 2
}

# use_build: finds the programs; after the options were read.
use_build() {
  build=$(cd "$build" 2>/dev/null && pwd) || die "$build: no build directory; name one with --build"
  FSGATE=$build/fsgate/stella-fsgate
  BENCH_FS=$build/tests/bench/bench-fs
  BENCH_EXEC=$build/tests/bench/bench-exec
  AS_USER=$build/tests/lib/as-user
  [ -x "$FSGATE" ] && [ -x "$BENCH_FS" ] || die "$build: run ninja -C $build first"
}

# make_work: the directory of this run, on the file system that is measured.
make_work() {
  work=$(mktemp -d "$base/stella-bench.XXXXXX")
  chmod 755 "$work"
  export STELLA_STATE_DIR=$work/state
  trap bench_cleanup EXIT
  trap 'exit 143' TERM
  trap 'exit 130' INT
}

declare -A pid_of=() # the server of each mounted system

bench_cleanup() {
  local result=$? name
  trap - EXIT
  set +e
  for name in "${!pid_of[@]}"; do
    unmount_system "$name" 2>/dev/null
  done
  cd /
  ! mountpoint -q "$work" || umount -l "$work" # the tmpfs of --smoke
  rm -rf --one-file-system "$work"
  exit "$result"
}

now_us() {
  local now=$EPOCHREALTIME
  printf '%s\n' "${now/[.,]/}"
}

# home_of NAME: the directory that its commands work in, as they see it.
home_of() {
  case $1 in
  native) echo "$work/src/native" ;;
  view | view-user) echo "$work/$1/workspace" ;;
  *) echo "$work/$1" ;;
  esac
}

# in_system NAME COMMAND...: as whom and where its files are seen. The plain user's view is seen by no one else.
in_system() {
  local name=$1
  shift
  if [ "$name" = view-user ] && [ "$(id -u)" = 0 ]; then
    nsenter --mount --target "${pid_of[$name]}" --setuid "$USER_ID" --setgid "$USER_ID" -- "$@"
  else
    "$@"
  fi
}

# serve NAME COMMAND...: starts a server that stays in the foreground, and waits until its mount is there.
serve() {
  local name=$1 tries=0
  shift
  "$@" >"$work/$name.log" 2>&1 </dev/null &
  pid_of[$name]=$!
  until in_system "$name" mountpoint -q "$work/$name" 2>/dev/null; do
    tries=$((tries + 1))
    if [ "$tries" -gt 500 ] || ! kill -0 "${pid_of[$name]}" 2>/dev/null; then
      cat "$work/$name.log" >&2
      die "$name does not mount"
    fi
    sleep 0.02
  done
}

# mount_system NAME [OPTION...]: OPTIONs are for our gateway.
mount_system() {
  local name=$1
  local view=(mount -f --runtime none --workspace "$work/src/$name" "${@:2}" "$work/$name")
  mkdir -p "$work/$name"
  case $name in
  native) ;;
  view) serve view ${gateway_prefix:-} "$FSGATE" "${view[@]}" ;;
  view-user)
    if [ "$(id -u)" = 0 ]; then
      chown "$USER_ID:$USER_ID" "$work/$name"
      serve view-user "$AS_USER" --home "$work/home" "$USER_ID" -- "$FSGATE" "${view[@]}"
    else
      serve view-user "$FSGATE" "${view[@]}"
    fi
    ;;
  bindfs) serve bindfs bindfs -f "$work/src/bindfs" "$work/bindfs" ;;
  hp) serve hp "$hp" --foreground "$work/src/hp" "$work/hp" ;;
  esac
}

unmount_system() {
  local name=$1 pid=${pid_of[$1]:-}
  [ -n "$pid" ] || return 0
  case $name in
  view | view-user) kill -TERM "$pid" ;;
  *) fusermount3 -u "$work/$name" || fusermount3 -uz "$work/$name" ;;
  esac
  wait "$pid" || true
  unset "pid_of[$name]"
}
