#!/usr/bin/env bash
# Whose things are in a view, and with which modes: beside a directory of the host's own on the same disk, where the
# same commands have to leave the same behind.
. "${STELLA_TEST_LIB:?run this test through meson test}/sh-lib.sh"
preflight root fuse || exit $?

before=$(list_leaks)
cd "$tmp"
mkdir mnt
V=$tmp/mnt

mount_view() {
  expect_status 0 "$FSGATE" mount "$@" "$V"
}
unmount_view() {
  expect_status 0 "$FSGATE" unmount "$V"
}
have_acl=
mkdir probe
if command -v setfacl >/dev/null && setfacl -m u:1:--- probe 2>/dev/null; then have_acl=1; fi

echo "--- the umask, with and without a default ACL"
make_with_umasks() (
  cd "$1"
  for dir in plain inherits; do
    for mask in 000 022 027 077; do
      umask "$mask"
      : >"$dir/file$mask"
      mkdir "$dir/dir$mask"
      mkfifo "$dir/fifo$mask"
    done
  done
)
modes_in() {
  (cd "$1" && find . -mindepth 2 -printf '%P %m %y\n' | sort)
}
mkdir -p ws/plain ws/inherits native/plain native/inherits
if [ "$have_acl" ]; then
  setfacl -d -m u:1:rwx,g::rwx,o::r-x ws/inherits native/inherits
else
  skip "default ACLs" "setfacl or a file system with ACLs is missing"
fi
mount_view --workspace ws
make_with_umasks "$V/workspace"
make_with_umasks native
check_equal "there is something to compare" "$(modes_in native | wc -l)" 24
check_equal "modes are as on the disk, in the view" "$(modes_in "$V/workspace")" "$(modes_in native)"
check_equal "and on the host" "$(modes_in ws)" "$(modes_in native)"
check_equal "the umask counts" "$(stat -c %a ws/plain/file077 ws/plain/file000 | tr '\n' ' ')" "600 666 "

echo "--- chown to whom it belongs already"
: >ws/f
ln -s nowhere ws/l
chmod 6755 ws/f
own=$(stat -c %u:%g "$V/workspace/f")
moves_ctime() {
  local name=$1 old
  shift
  old=$(stat -c %z "ws/$name")
  "$@" "$V/workspace/$name"
  check_not "moves the time of change: ${*:1:2} $name" test "$old" = "$(stat -c %z "ws/$name")"
}
moves_ctime f chown "$own"
check_equal "takes the set-id bits away" "$(stat -c %a ws/f)" 755
moves_ctime f chown "${own%:*}"
moves_ctime f chgrp "${own#*:}"
moves_ctime l chown -h "$own"
moves_ctime plain chown "$own"
moves_ctime f python3 -c 'import os, sys; os.chown(sys.argv[1], -1, -1)'
tree=$(snapshot ws)
expect_status 1 chown 1 "$V/workspace/f"
expect_match err 'Operation not permitted'
expect_status 1 chgrp 1 "$V/workspace/f"
expect_unchanged "to somebody else is refused" ws "$tree"
unmount_view

expect_no_leaks "nothing is left" "$before"
finish
