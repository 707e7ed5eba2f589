#!/usr/bin/env bash
# A view mounted for the host to look into: its shape, links, nesting, names, errors. Each refusal has its
# allowed twin, and the host side is looked at.
. "${STELLA_TEST_LIB:?run this test through meson test}/sh-lib.sh"
preflight root fuse || exit $?

before=$(list_leaks)
cd "$tmp"
mkdir -p ws/src user tools/bin skills mnt outside
echo hello >ws/f
echo data >user/n
echo tool >tools/bin/t
echo skill >skills/s
echo secret >outside/secret
V=$tmp/mnt

mount_view() {
  expect_status 0 "$FSGATE" mount "$@" "$V"
}
unmount_view() {
  expect_status 0 "$FSGATE" unmount "$V"
}
# errno_of COMMAND...: the text after the last colon of its error.
error_of() {
  local text
  text=$("$@" 2>&1 >/dev/null) && echo "no error" && return
  echo "${text##*: }"
}

echo "--- shape"
mount_view --workspace ws --user-dir user --ro "$tmp/tools:/opt/stella" --ro "$tmp/skills:/opt/stella/agent-skills"
expect_match out '^/opt/stella +ro '
expect_line out "writable: /workspace /user"
check_equal "the root lists the mounts and the way to them" "$(ls "$V" | tr '\n' ' ')" "opt user workspace "
check_equal "a nested mount shows in its parent exactly once" "$(ls "$V/opt/stella" | tr '\n' ' ')" "agent-skills bin "
check_not "and is not made on the host" test -e tools/agent-skills
check_equal "a directory that leads to a mount is 0555" "$(stat -c %a "$V/opt")" 555
check_equal "with the right link count" "$(stat -c %h "$V")" 5
check_equal "content" "$(cat "$V/workspace/f" "$V/opt/stella/agent-skills/s")" "$(printf 'hello\nskill')"
check_equal "inode numbers are the host's" "$(stat -c %i "$V/workspace/f")" "$(stat -c %i ws/f)"
check_equal "d_ino equals st_ino" "$(ls -i "$V/workspace" | awk '$2 == "f" { print $1 }')" "$(stat -c %i "$V/workspace/f")"
check "what is written is on the host" sh -c "echo new >$V/workspace/g && grep -qx new $tmp/ws/g"
check_equal "and belongs to the owner of the mount" "$(stat -c %u:%g ws/g)" "$(stat -c %u:%g ws)"
check_equal "statfs is the host's" "$(stat -f -c %b "$V/workspace")" "$(stat -f -c %b ws)"

echo "--- synthetic directories are read-only"
for what in "mkdir $V/x" "touch $V/opt/x" "ln -s a $V/opt/l" "mv $V/opt $V/workspace/o" "chmod 700 $V/opt" "rmdir $V/opt"; do
  # shellcheck disable=SC2086 # words on purpose
  error=$(error_of $what)
  case $error in
  "Read-only file system" | "Device or resource busy") pass "$what: $error" ;;
  *) fail "$what" "$error" ;;
  esac
done

echo "--- links"
ln -s f ws/rel
ln -s src/../f ws/dots
ln -s /etc/passwd ws/abs
ln -s ../../../../../../etc/passwd ws/climb
ln -s "$tmp/outside/secret" ws/host
ln -s abs ws/chain
ln -s /user/n ws/to-user
ln -s "$tmp/outside" ws/outdir
ln -s self ws/self
ln -s /workspace/not-there-yet ws/dangling
ln -s /proc/self/root/etc/passwd ws/magic
ln -s ../../user/../../../etc/passwd ws/src/deep
check_equal "a relative link inside works" "$(cat "$V/workspace/rel")" hello
check_equal "one with .. that stays inside works" "$(cat "$V/workspace/dots")" hello
check_equal "an absolute one is meant in the view" "$(cat "$V/workspace/to-user")" data
check_equal "and is shown as a path below the mountpoint" "$(readlink "$V/workspace/to-user")" "$V/user/n"
check_equal "lstat has the size of that text" "$(stat -c %s "$V/workspace/to-user")" "$(printf %s "$V/user/n" | wc -c)"
for link in abs climb host magic outdir src/deep; do
  check_equal "$link: readlink is refused" "$(error_of readlink -v "$V/workspace/$link")" "Permission denied"
  check_equal "$link: following is refused" "$(error_of cat "$V/workspace/$link")" "Permission denied"
done
check_equal "through a link to a directory outside" "$(error_of cat "$V/workspace/outdir/secret")" "Permission denied"
check_equal "creating through it" "$(error_of touch "$V/workspace/outdir/new")" "Permission denied"
check_not "made nothing outside" test -e outside/new
check_equal "a chain is judged link by link: reading the first works" "$(readlink "$V/workspace/chain")" abs
check_equal "following it does not" "$(error_of cat "$V/workspace/chain")" "Permission denied"
check_equal "a link to itself" "$(error_of cat "$V/workspace/self")" "Too many levels of symbolic links"
check "a link that leaves can be made" ln -s /etc/shadow "$V/workspace/made"
check_equal "with its text on the host" "$(readlink ws/made)" /etc/shadow
check "looked at" stat -c %F "$V/workspace/made"
check "renamed" mv "$V/workspace/made" "$V/workspace/made2"
check "and removed" rm "$V/workspace/made2"
check "a dangling link inside may be created through" sh -c "echo made >$V/workspace/dangling"
check_equal "in the place that it names" "$(cat ws/not-there-yet)" made
ln -s ../workspace/no-dir/x ws/through-nothing
ln -s ../workspace/no-dir/../y ws/back-from-nothing
ln -s ../workspace/no-file/ ws/to-a-directory
check_equal "but not below what is absent" "$(error_of touch "$V/workspace/through-nothing")" "No such file or directory"
check_equal "nor back from there" "$(error_of touch "$V/workspace/back-from-nothing")" "No such file or directory"
check_equal "nor is a file made where a directory is meant" "$(error_of sh -c ": >$V/workspace/to-a-directory")" \
  "$(error_of sh -c ": >ws/no-file/")"
check_not "nothing of these is made" ls -d ws/no-dir ws/y ws/no-file
check_equal "the outside is as it was" "$(cat outside/secret; ls outside)" "$(printf 'secret\nsecret')"

echo "--- between mounts"
check_equal "hard links" "$(error_of ln "$V/workspace/f" "$V/user/f")" "Invalid cross-device link"
check "mv copies" mv "$V/workspace/g" "$V/user/g"
check_equal "all of it" "$(cat user/g)" new
check "a hard link in one mount" ln "$V/workspace/f" "$V/workspace/f2"
check_equal "is one inode" "$(stat -c %i:%h "$V/workspace/f2")" "$(stat -c %i "$V/workspace/f"):2"
check_equal "into a read-only mount" "$(error_of ln "$V/workspace/f" "$V/opt/stella/f")" "Read-only file system"
check_equal "out of one" "$(error_of ln "$V/opt/stella/bin/t" "$V/workspace/t")" "Invalid cross-device link"
check_equal "whose link count stays" "$(stat -c %h tools/bin/t)" 1

echo "--- special files"
check_equal "device nodes" "$(error_of mknod "$V/workspace/null" c 1 3)" "Operation not permitted"
check "FIFOs work" mkfifo "$V/workspace/fifo"
(echo through >"$V/workspace/fifo") &
check_equal "inside the view" "$(timeout 5 cat "$V/workspace/fifo")" through
mknod ws/dev c 1 3
check_equal "a device node of the host's does not open" "$(error_of cat "$V/workspace/dev")" "Permission denied"
check "set-id bits" sh -c "cp /bin/true $V/workspace/suid && chmod 6755 $V/workspace/suid"
check_equal "do not reach the host" "$(stat -c %a ws/suid)" 755

echo "--- names"
long=$(printf 'n%.0s' $(seq 255))
odd=$'new\nline\x1b[31m\xff -x'
check "255 bytes" touch "$V/workspace/$long"
check_equal "256 bytes" "$(error_of touch "$V/workspace/${long}n")" "File name too long"
check "any bytes" touch "$V/workspace/$odd"
check "are the same on the host" test -e "ws/$odd"
check "and are removed" rm "$V/workspace/$odd" "$V/workspace/$long"

echo "--- changes on the host are seen within a second"
check_not "a missing name is missing" test -e "$V/workspace/later"
echo later >ws/later
check "and there after it was made" wait_for 2 test -e "$V/workspace/later"
echo longer-than-before >ws/later
check "its new content" wait_for 2 grep -qx longer-than-before "$V/workspace/later"
rm ws/later
check "and gone after it was removed" wait_for 2 sh -c "! test -e $V/workspace/later"
unmount_view

echo "--- access by overlap"
mkdir -p ws/inner/deep ws/way/to/nested
echo keep >ws/inner/k
mount_view --workspace ws --ro "$tmp/ws/inner:/inner" --rw "$tmp/ws/inner/deep:/deep" --ro "$tmp/tools:/workspace/way/to/tools"
host=$(snapshot ws/inner)
check_equal "ro inside rw, by the outer path" "$(error_of touch "$V/workspace/inner/x")" "Read-only file system"
check_equal "its files too" "$(error_of sh -c "echo x >>$V/workspace/inner/k")" "Read-only file system"
check_equal "by its own path" "$(error_of touch "$V/inner/x")" "Read-only file system"
check_equal "rw inside ro, through the outer one" "$(error_of touch "$V/inner/deep/x")" "Read-only file system"
expect_unchanged "the read-only tree is as it was" ws/inner "$host"
# A hard link that the host has made between the two is one file; nothing in the view can make one.
ln ws/inner/k ws/twin
check "a name in the writable mount is writable" sh -c "echo more >>$V/workspace/twin"
check_equal "by the read-only one the same file is not" "$(error_of sh -c "echo x >>$V/inner/k")" "Read-only file system"
check_equal "nor is a new link to it made, by its own path" "$(error_of ln "$V/inner/k" "$V/workspace/twin2")" "Invalid cross-device link"
check_equal "nor by the outer one" "$(error_of ln "$V/workspace/inner/k" "$V/workspace/twin2")" "Invalid cross-device link"
check_equal "its link count is the host's doing" "$(stat -c %h ws/inner/k)" 2
rm ws/twin
check "rw inside ro, by its own path" touch "$V/deep/x"
check "on the host" test -e ws/inner/deep/x
check_equal "a mounted directory cannot be renamed" "$(error_of mv "$V/workspace/inner" "$V/workspace/i2")" "Device or resource busy"
check_equal "nor removed" "$(error_of rmdir "$V/workspace/inner")" "Device or resource busy"
check_equal "nor a directory on the way to a mount" "$(error_of mv "$V/workspace/way" "$V/workspace/w2")" "Device or resource busy"
check "another one can" mv "$V/workspace/src" "$V/workspace/src2"
check_equal "a directory on the way is laid over the host's" "$(ls "$V/workspace/way/to" | tr '\n' ' ')" "nested tools "
check_not "rm -rf stops at what is mounted" rm -rf "$V/workspace/way"
check_equal "whose content stays" "$(cat tools/bin/t)" tool
check_not "and removes the rest" test -e ws/way/to/nested
unmount_view

echo "--- single files, mounts below a mount on the host, everything read-only"
mkdir -p ws/sub
mount -t tmpfs none ws/sub
echo below >ws/sub/b
mount_view -r --workspace ws --rw "$tmp/user/n:/note"
expect_line out "writable: nothing"
check_equal "a file as a mount" "$(cat "$V/note")" data
check_equal "is read-only with -r" "$(error_of sh -c "echo x >$V/note")" "Read-only file system"
check_equal "what is mounted below a mount on the host is an empty directory" "$(ls -A "$V/workspace/sub")" ""
check_equal "that nothing can be made in" "$(error_of touch "$V/workspace/sub/x")" "Read-only file system"
unmount_view
umount ws/sub

echo "--- runtime directories"
mount_view --workspace ws --runtime host
check_equal "programs show" "$(stat -c %F "$V/usr/bin")" directory
check_not "secrets of /etc do not" test -e "$V/etc/shadow"
check_not "nor are they listed" sh -c "ls $V/etc | grep -E '^g?shadow'"
check "a file that all may read does" test -s "$V/etc/group"
check_equal "read-only" "$(error_of touch "$V/usr/x")" "Read-only file system"
unmount_view

echo "--- bad input: one line each, nothing mounted"
bad() {
  local expected=$1 pattern=$2
  shift 2
  expect_status "$expected" "$FSGATE" "$@"
  expect_one_line err
  expect_match err "$pattern"
  check_not "nothing is mounted" mountpoint -q "$V"
}
bad 2 'unknown command' frobnicate
bad 2 'which MOUNTPOINT' mount --workspace ws
bad 2 "absent\": No such file or directory" mount --workspace "$tmp/absent" "$V"
bad 1 'No such file or directory' mount --workspace ws "$tmp/absent"
bad 1 'choose a mountpoint outside the workspace' mount --workspace ws "$tmp/ws/src2"
bad 2 'view' mount --workspace ws --ro "$tmp/tools:/opt/x" --ro "$tmp/skills:/opt/x" "$V"
bad 2 'proc' mount --workspace ws --ro "$tmp/tools:/proc/x" "$V"
bad 1 'no view is mounted' unmount "$V"
touch mnt/file
bad 1 'not empty' mount --workspace ws "$V"
rm mnt/file
bad 1 'is not a directory' mount --workspace ws "$tmp/ws/f"
ln -s mnt mntlink
bad 1 'symbolic link' mount --workspace ws "$tmp/mntlink"
echo '{"version": 1, "filesystem": {"working_dir": "/workspace", "hide": ["x"]}}' >policy.json
sed "s|\"filesystem\": {|\"filesystem\": {\"workspace_root\": \"$tmp/ws\", |" policy.json >deny.json
bad 125 'filesystem.hide: not implemented yet' mount --policy deny.json "$V"
echo '{"version": 1, "filesystem": {"working_dir": "/a", "mounts": [
  {"host_path": "'"$tmp"'/ws", "view_path": "/a", "access": "rw"},
  {"host_path": "'"$tmp"'/user", "view_path": "/b", "access": "rw", "quota_files": 5}]}}' >quota.json
bad 125 'filesystem.mounts\[1\].quota_files: not implemented yet' mount --policy quota.json "$V"
mount_view --workspace ws
expect_status 1 "$FSGATE" mount --workspace user "$V"
expect_match err 'a view is mounted there already'
check_equal "the first view still answers" "$(cat "$V/workspace/f")" hello
background sh -c "cd $V/workspace && exec sleep 100"
check "a holder is there" wait_for 2 sh -c "test \$(readlink /proc/$background_pid/cwd) = $V/workspace"
expect_status 1 "$FSGATE" unmount "$V"
expect_match err "in use by $background_pid "
kill "$background_pid"
wait "$background_pid" || true
unmount_view

echo "--- a view inside what another view mounts"
mkdir -p big/inner
expect_status 0 "$FSGATE" mount --workspace ws "$tmp/big/inner"
mount_view --workspace big
check_equal "is not entered" "$(ls -A "$V/workspace/inner")" ""
expect_status 0 "$FSGATE" unmount "$tmp/big/inner"
check "its gateway ends with it" wait_for 3 sh -c "! pgrep -f '^$FSGATE mount --workspace ws $tmp/big/inner'"
unmount_view

echo "--- death of the gateway"
mount_view --workspace ws
echo written >"$V/workspace/w"
gateway=$(gateway_of "$V")
kill -KILL "$gateway"
check "it has ended" wait_for 5 sh -c "! kill -0 $gateway 2>/dev/null"
check_equal "processes are told" "$(error_of ls "$V/workspace")" "Transport endpoint is not connected"
check_equal "nothing that was written is lost" "$(cat ws/w)" written
mount_view --workspace ws
check_equal "the next start takes the mountpoint over" "$(cat "$V/workspace/w")" written
gateway=$(gateway_of "$V")
kill -TERM "$gateway"
check "SIGTERM unmounts" wait_for 3 sh -c "! mountpoint -q $V"

expect_no_leaks "nothing is left" "$before"
finish
