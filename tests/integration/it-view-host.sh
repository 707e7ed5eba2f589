#!/usr/bin/env bash
# A view of ownership "host": several users at work in it, beside the same users at work in a directory of the host on
# the same disk. What each command says and what it leaves behind have to be the same. Then what turns on the kernel
# having been told something else a moment ago; read-only mounts; and who may have such a view.
. "${STELLA_TEST_LIB:?run this test through meson test}/sh-lib.sh"
preflight root fuse || exit $?

before=$(list_leaks)
cd "$tmp"
mkdir mnt ws native ro
V=$tmp/mnt
echo ro >ro/f
mkdir ro/d

cat >host.json <<END
{"version": 1, "filesystem": {"workspace_root": "$tmp/ws", "working_dir": "/workspace", "ownership": "host",
 "mounts": [{"host_path": "$tmp/ro", "view_path": "/ro", "access": "ro"}]}}
END
mount_view() {
  expect_status 0 "$FSGATE" mount --policy host.json --allow-other "$V"
}
unmount_view() {
  expect_status 0 "$FSGATE" unmount "$V"
}
error_of() {
  local text
  text=$("$@" 2>&1 >/dev/null) && echo "no error" && return
  echo "${text##*: }"
}

# Two users. ann is in the team (2100) by a supplementary group when she says so; bob never is.
ann() { setpriv --reuid 2001 --regid 2001 --clear-groups -- "$@"; }
ann_in_team() { setpriv --reuid 2001 --regid 2001 --groups 2100 -- "$@"; }
bob() { setpriv --reuid 2002 --regid 2002 --clear-groups -- "$@"; }
root() { "$@"; }

# One line a command: who, what. Paths are relative to the directory.
commands() {
  cat <<'END'
root mkdir shared team closed
root chmod 1777 shared
root chgrp 2100 team
root chmod 2775 team
root chmod 700 closed
ann touch shared/file
ann mkdir shared/dir
ann mkfifo shared/fifo
ann ln -s file shared/link
ann mkdir closed/not
ann ls closed
bob rm -f shared/file
bob mv shared/file shared/taken
bob rmdir shared/dir
bob mv shared/dir shared/moved
bob touch shared/dir/in
ann mv shared/fifo shared/pipe
ann rm shared/pipe
ann touch shared/over
bob touch shared/mine
bob mv -f shared/mine shared/over
root mv -f shared/mine shared/over
bob chmod 777 shared/file
bob chown 2002 shared/file
bob chgrp 2002 shared/file
ann chown 2002 shared/file
ann chgrp 2100 shared/file
ann_in_team chgrp 2100 shared/file
ann_in_team chgrp 2002 shared/file
bob touch -d 2001-01-01 shared/file
bob touch shared/file
ann touch -d 2001-01-01 shared/file
ann chmod 666 shared/file
bob touch shared/file
bob touch -d 2002-01-01 shared/file
bob sh -c 'echo bob >>shared/file'
ann sh -c 'echo ann >>shared/file'
bob sh -c ': >shared/file'
bob setfattr -n user.x -v y shared/file
ann chmod 644 shared/file
bob setfattr -n user.x -v z shared/file
bob getfattr -n user.x shared/file
ann touch team/refused
ann_in_team touch team/file
ann_in_team mkdir team/dir
ann_in_team touch team/dir/file
ann_in_team sh -c 'umask 002; touch team/open; mkdir team/opendir'
bob touch team/dir/file
bob cat team/file
root sh -c 'umask 002; touch team/roots'
ann_in_team sh -c 'echo x >>team/roots'
ann sh -c 'echo x >>team/roots'
bob sh -c 'echo x >>team/roots'
ann_in_team install -m 2755 /dev/null team/setgid
ann_in_team chmod 2750 team/file
ann chmod 2755 team/open
ann_in_team chmod 2777 team/open
bob sh -c 'echo x >>team/open'
ann chmod 4755 shared/file
ann chmod 4777 shared/file
bob sh -c 'echo x >>shared/file'
ann chmod 6777 shared/file
bob truncate -s 1 shared/file
ann chmod 6777 shared/file
bob sh -c ': >shared/file'
ann chmod 4777 shared/file
root sh -c 'echo x >>shared/file'
ann sh -c 'echo x >>shared/file'
ann chmod 4777 shared/file
root chown 2001 shared/file
root install -m 6755 /dev/null shared/roots
root chown 2002:2001 shared/roots
ann touch shared/secret
ann chmod 600 shared/secret
ann sh -c 'echo secret >shared/secret'
bob cat shared/secret
bob sh -c ': >>shared/secret'
bob sh -c ': >shared/secret'
bob truncate -s 0 shared/secret
root cat shared/secret
bob ln shared/secret shared/linked
ann ln shared/secret shared/linked
ann mkdir -m 711 shared/search
ann sh -c 'echo found >shared/search/file'
bob cat shared/search/file
bob ls shared/search
ann chmod 744 shared/search
bob ls shared/search
bob cat shared/search/file
ann chmod 0 shared/secret
ann cat shared/secret
ann sh -c 'umask 077; touch shared/private; mkdir shared/privatedir'
ann sh -c 'umask 000; touch shared/public; mkdir shared/publicdir'
bob touch shared/publicdir/bobs
ann rm shared/publicdir/bobs
ann cp -p /etc/hostname shared/copy
ann chown -h 2001:2001 shared/link
bob chown -h 2002 shared/link
root chown -h 2002 shared/link
END
  command -v setfacl >/dev/null || return 0
  cat <<'END'
ann setfacl -m u:2002:rw shared/secret
ann chmod 660 shared/secret
bob cat shared/secret
bob setfacl -m u:2002:rwx shared/secret
bob setfacl -b shared/secret
ann mkdir shared/acl
ann setfacl -d -m u:2002:rwx,o::- shared/acl
ann setfacl -m u:2002:rwx shared/acl
ann sh -c 'umask 077; echo text >shared/acl/file; mkdir shared/acl/dir'
bob sh -c 'echo more >>shared/acl/file'
bob touch shared/acl/dir/bobs
ann_in_team chgrp 2100 shared/copy
ann_in_team chmod 2755 shared/copy
ann setfacl -m u:2002:r shared/copy
ann_in_team chmod 2755 shared/copy
ann_in_team setfacl -m u:2002:rw shared/copy
bob getfacl -cEn shared/copy
END
}

# All of them in DIR: what each said, with its status.
do_commands() (
  cd "$1"
  while read -r who what; do
    printf '%s %s\n' "$who" "$what"
    status=0
    eval "$who $what" 2>&1 </dev/null || status=$?
    echo "  status $status"
  done < <(commands)
)
tree_of() {
  (
    cd "$1"
    find . -printf '%P %y %m %U:%G %n %s\n' | sort
    find . -type f -size -1k -o -type f -exec sha1sum {} + | sort
    if command -v getfacl >/dev/null; then getfacl -RcsEnp . | sort; fi
  )
}

echo "--- users at work"
mount_view
do_commands native >native.log
do_commands "$V/workspace" >view.log
check "there is something to compare" test "$(grep -c 'status 0' native.log)" -gt 40 -a \
  "$(grep -c 'status 1' native.log)" -gt 25
check_equal "every command says the same" "$(diff native.log view.log || true)" ""
check_equal "the host's tree is the same" "$(diff <(tree_of native) <(tree_of ws) || true)" ""
check_equal "and so it is in the view" "$(diff <(tree_of native) <(tree_of "$V/workspace") || true)" ""
check_equal "a set-user-ID bit has no effect in the view" "$(findmnt -no OPTIONS "$V" | grep -o nosuid)" nosuid
check_equal "no device nodes, not for root" "$(error_of mknod "$V/workspace/null" c 1 3)" "Operation not permitted"
check_not "nothing of it is on the host" test -e ws/null

echo "--- writing with what root has opened first"
# the kernel writes to the host's file with the credentials of the first who opened it
echo roots >"$V/workspace/shared/held"
chmod 4777 "$V/workspace/shared/held"
exec 7<>"$V/workspace/shared/held"
bob dd if=/dev/zero of="$V/workspace/shared/held" bs=1 count=1 conv=notrunc status=none
check_equal "another's write takes the set-user-ID bit away" "$(stat -c %a ws/shared/held)" 777
exec 7<&-

echo "--- many at once"
background_pids=()
for who in ann ann_in_team bob root; do
  $who sh -c 'for i in $(seq 100); do echo $i >"$0.$i"; done' "$V/workspace/shared/$who" &
  background_pids+=($!)
done
wait "${background_pids[@]}"
check_equal "each one's files are its own" \
  "$(find ws/shared -name 'ann*.*' -uid 2001 -gid 2001 -o -name 'bob.*' -uid 2002 -gid 2002 -o -name 'root.*' -uid 0 -gid 0 | wc -l)" 400

echo "--- links through what its reader may not search"
ann mkdir -m 700 ws/shared/anns
ann ln -s ../search ws/shared/anns/hers
root mkdir -m 750 ws/shared/teams
chgrp 2100 ws/shared/teams
ln -s ../search ws/shared/teams/theirs
for link in anns/hers teams/theirs; do
  bob ln -s "../shared/$link/file" "ws/shared/to-${link#*/}"
done
check_equal "who may is told where it leads" "$(ann readlink "$V/workspace/shared/to-hers")" "$V/workspace/shared/search/file"
check_equal "who may not is told nothing" "$(error_of bob readlink -v "$V/workspace/shared/to-hers")" "Permission denied"
check_equal "by a group one may" "$(ann_in_team readlink "$V/workspace/shared/to-theirs")" "$V/workspace/shared/search/file"
check_equal "not without it" "$(error_of ann readlink -v "$V/workspace/shared/to-theirs")" "Permission denied"
check_equal "and root may" "$(readlink "$V/workspace/shared/to-hers")" "$V/workspace/shared/search/file"

echo "--- what the kernel was told a moment ago"
# A name that it takes for a new one: it has not judged what is there by now.
new_meanwhile() { # NAME MODE: of a file of ann's, made after bob was told that there is none
  check_not "$1 is not there" bob test -e "$V/workspace/shared/$1"
  ann sh -c "umask 0; echo hers >$tmp/ws/shared/$1; chmod $2 $tmp/ws/shared/$1"
}
new_meanwhile closed 600
check_equal "opening with O_CREAT is judged" "$(error_of bob sh -c "echo his >>$V/workspace/shared/closed")" "Permission denied"
check_equal "and changed nothing" "$(cat ws/shared/closed)" hers
if [ "$(cat /proc/sys/fs/protected_regular)" = 0 ]; then
  new_meanwhile open 666
  bob sh -c "echo his >>$V/workspace/shared/open"
  check_equal "where it is granted it works" "$(cat ws/shared/open)" "$(printf 'hers\nhis')"
fi
# A name in a sticky directory that is another's by now.
bob touch "$V/workspace/shared/changes"
bob stat "$V/workspace/shared/changes" >stat.log
rm ws/shared/changes
ann sh -c 'echo hers >ws/shared/changes'
check_equal "removing it is judged by whose it is" "$(error_of bob rm -f "$V/workspace/shared/changes")" "Operation not permitted"
check_equal "and it is still there" "$(cat ws/shared/changes)" hers
bob touch "$V/workspace/shared/own"
expect_status 0 bob rm "$V/workspace/shared/own"
check_not "one's own goes" test -e ws/shared/own

echo "--- read-only mounts, root included"
chmod 777 ro ro/f ro/d
tree=$(snapshot ro)
for who in root ann; do
  for what in "touch $V/ro/new" "touch $V/ro/f" "rm -f $V/ro/f" "mkdir $V/ro/new" "rmdir $V/ro/d" "mv $V/ro/f $V/ro/g" \
    "ln $V/ro/f $V/ro/g" "truncate -s 0 $V/ro/f" "dd if=/dev/null of=$V/ro/f"; do
    # shellcheck disable=SC2086 # words on purpose
    check_equal "$who: $what" "$(error_of $who $what)" "Read-only file system"
  done
done
for what in "chmod 700 $V/ro/f" "chown 2001 $V/ro/f" "setfattr -n user.a -v b $V/ro/f" "touch -d 2001-01-01 $V/ro/f"; do
  # shellcheck disable=SC2086
  check_equal "root: $what" "$(error_of root $what)" "Read-only file system"
done
expect_unchanged "the tree is as it was" ro "$tree"
check_equal "reading works" "$(bob cat "$V/ro/f")" ro

echo "--- what the gateway keeps for itself"
capabilities_of_threads() { # of all but the first
  local gateway
  gateway=$(gateway_of "$V")
  for task in /proc/"$gateway"/task/*; do
    [ "${task##*/}" = "$gateway" ] || sed -n 's/^CapPrm:\t0*//p' "$task/status"
  done | sort -u
}
all_capabilities=$(sed -n 's/^CapPrm:\t0*//p' /proc/self/status)
# expect_capabilities WHAT MASK: those that serve; the others (watchdog, status) answer nothing from the host's files
expect_capabilities() {
  local found
  found=$(capabilities_of_threads)
  check_equal "$1" "$(grep -vx "$all_capabilities" <<<"$found")" "$2"
}
# CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID SETGID SETUID SYS_ADMIN; the last three
expect_capabilities "serving threads can take no more capabilities than these" 2000df
unmount_view
expect_status 0 "$FSGATE" mount --workspace ws --allow-other "$V"
expect_capabilities "and of ownership \"owner\" than these" 2000c0
unmount_view

echo "--- who may have such a view"
bad() { # STATUS TEXT COMMAND...
  expect_status "$1" "${@:3}"
  expect_one_line err
  check_equal "what is said" "$err" "stella-fsgate: $2"
  check_not "nothing is mounted" mountpoint -q "$V"
}
chown 2001 mnt
bad 2 'filesystem.ownership: "host" is for root only' as-user 2001 -- "$FSGATE" mount --policy host.json "$V"
bad 2 'filesystem.ownership: "host" is for root only' as-user 2001 -- "$FSGATE" check --policy host.json
expect_status 0 "$FSGATE" check --policy host.json
for capability in chown dac_override fowner fsetid; do
  bad 1 "filesystem.ownership: \"host\" needs CAP_${capability^^}" \
    setpriv --bounding-set "-$capability" -- "$FSGATE" mount --policy host.json "$V"
done
chown 0 mnt
expect_status 0 "$FSGATE" mount --policy host.json "$V"
check_equal "without --allow-other only root enters" "$(error_of bob ls "$V")" "Permission denied"
check_equal "who does" "$(cat "$V/ro/f")" ro
unmount_view

expect_no_leaks "nothing is left" "$before"
finish
