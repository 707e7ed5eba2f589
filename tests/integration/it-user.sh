#!/usr/bin/env bash
# An ordinary user: commands in a user namespace of their own, with the FUSE mount made there or, where the kernel
# refuses that, by fusermount3; a view to look into, by fusermount3. And what is said when something is
# missing: one line, the right status, nothing left.
. "${STELLA_TEST_LIB:?run this test through meson test}/sh-lib.sh"
preflight root fuse userns || exit $?
without_bwrap

USER_ID=1 # daemon: fusermount3 wants a user that has a name
home=$tmp/home
mkdir "$home" "$tmp/ro"
echo tool >"$tmp/ro/t"
mkdir "$home/ws" "$home/mnt" "$home/secret"
echo hello >"$home/ws/f"
echo secret >"$home/secret/s"
ln -s /etc/passwd "$home/ws/leaves"
ln -s f "$home/ws/stays"
chown -Rh $USER_ID:$USER_ID "$home"
as() {
  as-user --home "$home" $USER_ID -- "$@"
}
run_there() {
  as "$EXEC" run --workspace "$home/ws" --ro "$tmp/ro:/opt/stella" -- "$@"
}
# The state directory is the user's.
export STELLA_STATE_DIR=$home/state
expect_status 0 run_there true
before=$(list_leaks)

# every_level WHAT: the same promises, however the view comes to be mounted.
every_level() {
  echo "--- $1"
  expect_status 0 run_there sh -c 'echo hi >/workspace/new && cat /workspace/new && id -u && ls /'
  expect_line out hi
  expect_line out 1000
  check_equal "$1: what is made belongs to the user" "$(stat -c %u:%g "$home/ws/new")" "$USER_ID:$USER_ID"
  rm "$home/ws/new"
  tree=$(snapshot "$tmp/ro")
  expect_status 2 run_there sh -c "echo x >/opt/stella/t"
  expect_status 2 run_there sh -c 'echo x >/opt/stella/n'
  expect_match err 'Read-only file system'
  expect_unchanged "$1: the read-only tree is as it was" "$tmp/ro" "$tree"
  expect_status 0 run_there cat /opt/stella/t
  expect_line out tool
  expect_status 2 run_there ls "$home" /root /etc/shadow
  expect_status 0 run_there sh -c 'grep -E "^(CapEff|NoNewPrivs|Seccomp):" /proc/self/status; test ! -w /proc/sys/kernel/hostname'
  expect_match out '^CapEff:.0000000000000000$'
  expect_match out '^NoNewPrivs:.1$'
  expect_match out '^Seccomp:.2$'
  expect_status 124 as "$EXEC" run --workspace "$home/ws" --timeout 1s -- sh -c 'setsid sleep 100 & sleep 100'
  check_equal "$1: no process is left" "$(pgrep -cx sleep || true)" 0
  expect_no_leaks "$1: nothing is left" "$before"
}

every_level "mounted in the user namespace"

# Of all new mounts, only that of FUSE sets a flag (FSCONFIG_SET_FLAG is 0).
as() {
  deny-syscall fsconfig:1=0 EPERM -- as-user --home "$home" $USER_ID -- "$@"
}
every_level "mounted by fusermount3"

echo "--- a view to look into"
as() {
  as-user --home "$home" $USER_ID -- "$@"
}
# All in one call: the mount is in the namespace of as-user.
cat >"$tmp/look.sh" <<'END'
cd "$HOME"
"$FSGATE" mount --workspace ws --ro "$RO:/opt/stella" mnt || exit
echo "link: $(cat mnt/workspace/leaves 2>&1)"
echo "inside: $(cat mnt/workspace/stays)"
echo x >mnt/opt/stella/t || echo "read-only"
echo made >mnt/workspace/made
stat -c 'owner: %u' mnt/workspace/made
"$FSGATE" unmount mnt
echo "unmounted: $?"
mountpoint -q mnt || echo "gone"
"$FSGATE" mount -f --workspace ws mnt >/dev/null 2>gateway.err &
gateway=$!
for i in $(seq 100); do mountpoint -q mnt && break; sleep 0.1; done
"$FSGATE" unmount mnt
wait $gateway
echo "ended: $?, saying '$(cat gateway.err)'"
END
export FSGATE RO=$tmp/ro
expect_status 0 as bash "$tmp/look.sh"
expect_match out 'link: .*Permission denied'
expect_line out 'inside: hello'
expect_line out 'read-only'
expect_line out "owner: $USER_ID"
expect_line out 'unmounted: 0'
expect_line out 'gone'
expect_line out "ended: 0, saying ''"
check_equal "on the host" "$(cat "$home/ws/made"; stat -c %u "$home/ws/made")" "$(printf 'made\n%s' $USER_ID)"

echo "--- what is missing is said in one line"
missing() {
  local pattern=$1
  shift
  expect_status 125 "$@"
  expect_one_line err
  expect_match err "$pattern"
  check_equal "nothing is run" "$out" ''
  expect_no_leaks "and nothing left" "$before"
}
command_line=("$EXEC" run --workspace "$home/ws" -- echo ran)
mkdir -m 700 "$tmp/other"
chown 4321:4321 "$tmp/other"
# With a device that is root's alone, whatever this machine's is.
missing '/dev/fuse.*0666' unshare -m sh -c 'mount -t tmpfs -o mode=755 none /dev && cd /dev && umask 0 && mknod null c 1 3 &&
  mknod zero c 1 5 && mknod full c 1 7 && mknod random c 1 8 && mknod urandom c 1 9 && mknod tty c 5 0 &&
  mknod -m 600 fuse c 10 229 && exec "$@"' sh setpriv --reuid 4321 --regid 4321 --clear-groups \
  env STELLA_STATE_DIR="$tmp/other/state" "$EXEC" run --workspace "$tmp/ro" -- echo ran
missing 'user namespace' as unshare -Ur sh -c 'echo 0 >/proc/sys/user/max_user_namespaces && exec "$@"' sh "${command_line[@]}"
echo "--- as root, without what the host may lack"
export STELLA_STATE_DIR=$tmp/root-state
expect_status 0 "${command_line[@]}"
before=$(list_leaks)
missing '/dev/fuse.*modprobe fuse' unshare -m sh -c 'mount -t tmpfs none /dev && cd /dev && mknod null c 1 3 &&
  mknod zero c 1 5 && mknod full c 1 7 && mknod random c 1 8 && mknod urandom c 1 9 && mknod tty c 5 0 && exec "$@"' sh "${command_line[@]}"
missing 'seccomp' deny-syscall seccomp,prctl:0=22 EINVAL -- "${command_line[@]}"
missing 'pivot_root|root' deny-syscall pivot_root EPERM -- "${command_line[@]}"
missing 'clone of it|cannot' deny-syscall open_tree ENOSYS -- "${command_line[@]}"
expect_status 0 deny-syscall openat2 ENOSYS -- "${command_line[@]}"
expect_line out ran
finish
