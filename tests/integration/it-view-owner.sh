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

# error_of COMMAND...: the text after the last colon of its error.
error_of() {
  local text
  text=$("$@" 2>&1 >/dev/null) && echo "no error" && return
  echo "${text##*: }"
}

echo "--- directories that may not be searched"
mkdir theirs
chown 1 theirs
mount_view --workspace theirs
D=$V/workspace/d
expect_status 0 mkdir "$D"
touch theirs/d/0 theirs/d/600 theirs/d/222 theirs/d/1621 theirs/d/444
for mode in 0 600 222 1621 444; do
  expect_status 0 chmod "$mode" "$D"
  check_equal "shows" "$(stat -c %a "$D")" "$mode"
  expect_status 0 touch -d "2001-01-01 $((mode % 24)):00" "$D"
  if [ "$mode" != 1621 ]; then # by names that the kernel has not been told yet
    check_equal "nothing in it is reached" "$(error_of stat "$D/$mode")" "Permission denied"
  fi
done
check_equal "one that may be read gives its names" "$(ls "$D" 2>/dev/null | wc -l)" 5
expect_status 0 chmod 711 "$D"
check "and back" stat "$D/444"
mkdir "$V/workspace/e"
# through an O_PATH fd, before and after the host takes it out of the mount
check_equal "one that the host took out is out" "$(
  python3 - "$V/workspace/e" <<'END'
import os, sys
fd = os.open(sys.argv[1], os.O_PATH)
os.chmod("/proc/self/fd/%d" % fd, 0)
os.chmod("/proc/self/fd/%d" % fd, 0o200)
os.rename("theirs/e", "moved")
try:
    os.chmod("/proc/self/fd/%d" % fd, 0o700)
except OSError as error:
    print(error.strerror)
END
)" "Stale file handle"
check_equal "and as it was" "$(stat -c %a moved)" 200
unmount_view

as() { # as UID COMMAND...: with no other groups
  setpriv --reuid "$1" --regid "$1" --clear-groups -- "${@:2}"
}
acl_of() {
  getfacl -cEn -- "$1"
}

if [ "$have_acl" ]; then
  echo "--- ACLs"
  mkdir ws/acl
  echo one >ws/acl/one
  mkdir ramfs ro
  echo ro >ro/f
  mount -t ramfs none ramfs
  echo none >ramfs/f
  mount_view --workspace ws --rw "$tmp/ramfs:/none" --ro "$tmp/ro:/ro"
  expect_status 0 setfacl -m u:1:rw,g:2:r "$V/workspace/acl/one"
  check_equal "what is set is there" "$(acl_of "$V/workspace/acl/one")" "$(acl_of ws/acl/one)"
  check "as it was meant" grep -qx user:1:rw- <<<"$(acl_of ws/acl/one)"
  check_equal "and the mode with it" "$(stat -c %A "$V/workspace/acl/one")" "-rw-rw-r--"
  expect_status 0 chmod 640 "$V/workspace/acl/one"
  check "chmod changes the mask" grep -qx mask::r-- <<<"$(acl_of ws/acl/one)"
  check_equal "which shows" "$(acl_of "$V/workspace/acl/one")" "$(acl_of ws/acl/one)"
  expect_status 0 setfacl -d -m u:1:rwx "$V/workspace/acl"
  : >"$V/workspace/acl/inherits"
  check "a default ACL is inherited" grep -qx user:1:rwx <<<"$(acl_of ws/acl/inherits)"
  expect_status 0 cp -a "$V/workspace/acl" "$V/workspace/copy"
  check_equal "cp -a takes them along" "$(acl_of ws/copy; acl_of ws/copy/one)" "$(acl_of ws/acl; acl_of ws/acl/one)"
  expect_status 0 setfacl -bk "$V/workspace/copy"
  check_equal "and they can be removed" "$(getfacl -cs ws/copy)" ""
  tree=$(snapshot ro)
  check_equal "on a read-only mount" "$(error_of setfacl -m u:1:rw "$V/ro/f")" "Read-only file system"
  check_equal "by a default ACL" "$(error_of setfacl -d -m u:1:rw "$V/ro")" "Read-only file system"
  check_equal "by removing" "$(error_of setfattr -x system.posix_acl_access "$V/ro/f")" "Read-only file system"
  expect_unchanged "nothing of it changes" ro "$tree"
  check_equal "where the host has none" "$(error_of setfacl -m u:1:rw "$V/none/f")" "Operation not supported"
  unmount_view

  echo "--- others enter, and the kernel judges by modes and ACLs"
  printf %s\\n granted >ws/granted
  cp ws/granted ws/refused
  cp ws/granted ws/all
  chmod 600 ws/granted
  setfacl -m u:1:r ws/granted
  setfacl -m u:1:- ws/refused
  mount_view --allow-other --workspace ws --rw "$tmp/ramfs:/none"
  check_equal "an ACL grants to whom it names" "$(as 1 cat "$V/workspace/granted")" granted
  check_equal "not to others" "$(error_of as 2 cat "$V/workspace/granted")" "Permission denied"
  check_equal "nor more than it says" "$(error_of as 1 sh -c ": >>$V/workspace/granted")" "Permission denied"
  check_equal "an ACL refuses" "$(error_of as 1 cat "$V/workspace/refused")" "Permission denied"
  check_equal "only whom it names" "$(as 2 cat "$V/workspace/refused")" granted
  check_equal "a mode grants" "$(as 1 cat "$V/workspace/all")" granted
  check_equal "modes show as they are" "$(stat -c %A "$V/workspace/refused")" "$(stat -c %A ws/refused)"
  check_equal "getfacl by another user" "$(as 1 getfacl -cEn "$V/workspace/granted")" "$(acl_of ws/granted)"
  check_equal "who is no owner cannot set one" "$(error_of as 1 setfacl -m u:1:rwx "$V/workspace/granted")" \
    "Operation not permitted"
  check_equal "a file system without ACLs is judged by its modes" "$(as 1 cat "$V/none/f")" none
  expect_status 0 setfacl -x u:1 "$V/workspace/granted"
  check_equal "what is taken away is refused at once" "$(error_of as 1 cat "$V/workspace/granted")" \
    "Permission denied"
  unmount_view
  umount ramfs
else
  skip "ACLs" "setfacl or a file system with ACLs is missing"
fi

echo "--- lsattr and chattr"
: >ws/attr
if chattr +A ws/attr 2>/dev/null; then
  flags_of() {
    lsattr -d "$1" | cut -d ' ' -f 1
  }
  chattr_error() {
    { chattr "$@" 2>&1 || true; } | sed 's/ while .*//; s/.*: //'
  }
  mount_view --workspace ws --ro "$tmp/ws/plain:/ro"
  check_equal "flags show" "$(flags_of "$V/workspace/attr")" "$(flags_of ws/attr)"
  check_equal "a directory's too" "$(flags_of "$V/workspace/plain")" "$(flags_of ws/plain)"
  expect_status 0 chattr -A +d "$V/workspace/attr"
  check "harmless ones can be set" grep -q '^[^A]*d[^A]*$' <<<"$(flags_of ws/attr)"
  old=$(flags_of ws/attr)
  for flag in i a j; do
    check_equal "$flag cannot" "$(chattr_error "+$flag" "$V/workspace/attr")" "Operation not permitted"
  done
  check_equal "and is not set" "$(flags_of ws/attr)" "$old"
  old=$(flags_of ws/plain/file000)
  check_equal "none on a read-only mount" "$(chattr_error +d "$V/ro/file000")" "Read-only file system"
  check_equal "nor of a directory" "$(chattr_error +d "$V/ro")" "Read-only file system"
  check_equal "it is as it was" "$(flags_of ws/plain/file000)" "$old"
  check_equal "nor of a synthetic one" "$(chattr_error +d "$V")" "Operation not supported"
  unmount_view
else
  skip "chattr" "the program, or the file system's support, is missing"
fi

echo "--- others enter, and a name is another's by now"
mkdir ws/sticky
chmod 1777 ws/sticky
mount_view --allow-other --workspace ws
S=$V/workspace/sticky
for name in changes stays; do
  as 1 sh -c ": >$tmp/ws/sticky/$name"
  as 1 stat "$S/$name" >stat.log
done
rm ws/sticky/changes
as 2 sh -c "echo his >$tmp/ws/sticky/changes"
check_equal "removing it is judged by whose it is" "$(error_of as 1 rm -f "$S/changes")" "Operation not permitted"
rm ws/sticky/changes
as 1 sh -c ": >$tmp/ws/sticky/changes"
as 1 stat "$S/changes" >stat.log
rm ws/sticky/changes
as 2 sh -c "echo his >$tmp/ws/sticky/changes"
check_equal "and so is moving it" "$(error_of as 1 mv "$S/changes" "$S/moved")" "Operation not permitted"
check_equal "it is still there" "$(cat ws/sticky/changes)" his
expect_status 0 as 1 rm "$S/stays"
check_not "one's own goes" test -e ws/sticky/stays
check_not "new is not there" as 1 test -e "$S/new"
(umask 077 && echo roots >ws/sticky/new)
check_equal "O_CREAT of what was made meanwhile" "$(error_of as 1 sh -c "echo mine >>$S/new")" "Permission denied"
check_equal "changed nothing" "$(cat ws/sticky/new)" roots
expect_status 0 rm "$S/changes"

echo "--- others enter, and a link leads through what its reader may not search"
mkdir -m 700 ws/private
mkdir ws/open
ln -s ../open ws/private/l
ln -s ../workspace/private/l/f ws/through
ln -s ../workspace/open/f ws/beside
check_equal "the owner is told where it leads" "$(readlink "$V/workspace/through")" "$V/workspace/open/f"
check_equal "others are told nothing" "$(error_of as 1 readlink -v "$V/workspace/through")" "Permission denied"
check_equal "but of what they may search" "$(as 1 readlink "$V/workspace/beside")" "$V/workspace/open/f"
unmount_view

expect_no_leaks "nothing is left" "$before"
finish
