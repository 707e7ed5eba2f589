#!/usr/bin/env bash
# The life of a mounted view: where it may be mounted, what ends it and how, who keeps it busy, what is left of a
# gateway that was killed and who clears it.
. "${STELLA_TEST_LIB:?run this test through meson test}/sh-lib.sh"
preflight root fuse || exit $?

before=$(list_leaks)
cd "$tmp"
mkdir -p ws/src user mnt other
echo hello >ws/f
echo data >user/n
V=$tmp/mnt

error_of() {
  local text
  text=$("$@" 2>&1 >/dev/null) && echo "no error" && return
  echo "${text##*: }"
}
mount_view() {
  expect_status 0 "$FSGATE" mount --workspace ws "$@" "$V"
}
gateway_pid() {
  "$FSGATE" status --json "$V" | python3 -c 'import json, sys; print(json.load(sys.stdin)["views"][0]["pid"])'
}
has_ended() {
  ! kill -0 "$1" 2>/dev/null || grep -qs '^State:.Z' "/proc/$1/status"
}
is_mounted() {
  mountpoint -q "$V"
}
# A child that does nothing but hold: its pid in $holder, running as soon as this returns.
hold() {
  coproc HOLD { exec "$@"; }
  holder=$HOLD_PID
  test_pids+=("$holder")
  read -r -u "${HOLD[0]}" _
}
let_go() {
  kill "$holder"
  wait "$holder" 2>/dev/null || true
}

echo "--- signals end it, with nothing lost"
for signal in TERM INT HUP; do
  mount_view
  gateway=$(gateway_pid)
  : >acknowledged
  (i=0; while echo $((i += 1)) 2>/dev/null >>"$V/workspace/log"; do echo $i; done) >acknowledged &
  writer=$!
  test_pids+=("$writer")
  check "$signal: a writer writes" wait_for 5 test -s acknowledged
  kill "-$signal" "$gateway"
  check "$signal unmounts" wait_for 5 sh -c "! mountpoint -q $V"
  check "$signal: the gateway ends" wait_for 5 has_ended "$gateway"
  wait "$writer" || true
  last=$(tail -n 1 acknowledged)
  check "$signal: what was acknowledged ($last lines) is on the host" test "$(wc -l <ws/log)" -ge "$last"
  check_equal "$signal: its socket is gone" "$(ls "$STELLA_STATE_DIR/views")" ""
  rm ws/log
done
"$FSGATE" mount -f --workspace ws "$V" >front &
front=$!
test_pids+=("$front")
check "in the foreground it prints its plan when it serves" wait_for 5 grep -q '^writable: /workspace' front
check_equal "and serves" "$(cat "$V/workspace/f")" hello
kill -INT "$front"
status=0
wait "$front" || status=$?
check_equal "SIGINT ends it with status 0" "$status" 0
check_not "unmounted" is_mounted

echo "--- a user of the view does not keep a signal from ending it"
mount_view
gateway=$(gateway_pid)
hold sh -c "cd $V/workspace && exec 3<f && echo in && exec sleep 100"
kill -TERM "$gateway"
check "it is off the mountpoint" wait_for 5 sh -c "! mountpoint -q $V"
check "and the gateway ends" wait_for 5 has_ended "$gateway"
let_go

echo "--- unmounted by somebody else"
mount_view
gateway=$(gateway_pid)
umount "$V"
check "the gateway ends" wait_for 5 has_ended "$gateway"
check_equal "its socket is gone" "$(ls "$STELLA_STATE_DIR/views")" ""

echo "--- one after the other, at once"
lost=0
for ((i = 0; i < 20; i++)); do
  "$FSGATE" mount --workspace ws "$V" >/dev/null || lost=$((lost + 1))
  gateway=$(gateway_pid)
  # the old one ends while the new one is there already, often with the same numbers
  "$FSGATE" unmount "$V" && "$FSGATE" mount --workspace user "$V" >/dev/null || lost=$((lost + 1))
  wait_for 5 has_ended "$gateway" || lost=$((lost + 1))
  [ "$(cat "$V/workspace/n" 2>&1)" = data ] || lost=$((lost + 1))
  "$FSGATE" status "$V" >/dev/null || lost=$((lost + 1))
  "$FSGATE" unmount "$V" || lost=$((lost + 1))
done
check_equal "a gateway that ends takes nothing from the next" "$lost" 0
check "no socket is left" wait_for 5 sh -c "test -z \"\$(ls '$STELLA_STATE_DIR/views')\""

echo "--- where it may be mounted"
refused() {
  local pattern=$1
  shift
  expect_status 1 "$FSGATE" mount "$@"
  expect_one_line err
  expect_match err "$pattern"
}
ln -s mnt link
ln -s ws wslink
mkdir full
touch full/x
refused "mountpoint \"$tmp/absent\": No such file or directory" --workspace ws "$tmp/absent"
refused 'mountpoint ".*": is not a directory' --workspace ws "$tmp/ws/f"
refused 'mountpoint ".*": is a symbolic link; name the directory itself' --workspace ws "$tmp/link"
refused 'mountpoint ".*": the directory is not empty' --workspace ws "$tmp/full"
inside='lies inside the mount %s; choose a mountpoint outside the workspace'
# shellcheck disable=SC2059 # a format on purpose
refused "$(printf "$inside" /workspace)" --workspace ws "$tmp/ws/src"
refused "$(printf "$inside" /workspace)" --workspace ws "$tmp/ws"
refused "$(printf "$inside" /workspace)" --workspace ws "$tmp/wslink/src"
refused "$(printf "$inside" /opt/x)" --workspace user --ro "$tmp/ws:/opt/x" "$tmp/ws/src"
check_not "nothing is mounted" is_mounted
check_equal "and nothing made" "$(ls ws/src full)" "$(printf 'full:\nx\n\nws/src:')"
mount_view
refused "mountpoint \".*\": a view is mounted there already" --workspace user "$V"
refused "mountpoint \".*\": a view is mounted there already" --workspace ws "$V"
check_equal "only one is there" "$(grep -c " $V " /proc/self/mountinfo)" 1
refused "mountpoint \".*\": the directory is not empty" --workspace user "$V/workspace"
expect_status 0 "$FSGATE" mount --workspace user "$V/workspace/src"
check_equal "a view in another view, of something else" "$(cat "$V/workspace/src/workspace/n")" data
expect_status 0 "$FSGATE" unmount "$V/workspace/src"
expect_status 0 "$FSGATE" unmount "$V"
expect_status 1 "$FSGATE" unmount "$V"
expect_match err 'no view is mounted there'
mount -t tmpfs none "$V"
expect_status 1 "$FSGATE" unmount "$V"
expect_match err 'no view is mounted there'
check "what else is mounted stays" is_mounted
umount "$V"

echo "--- who keeps it busy"
# A library of its own: mapped without being open.
cp "$(ldd "$(command -v sleep)" | awk '$1 ~ /^libc[.]so/ { print $3 }')" ws/library
cp "$(command -v sleep)" ws/program
busy() {
  local what=$1
  expect_status 1 timeout 10 "$FSGATE" unmount "$V"
  expect_one_line err
  expect_match err "^stella-fsgate: unmount: \"$V\": the view is in use by $holder [^ ]+ \\($what\\); end it, or use --lazy$"
  check "it is still mounted" is_mounted
}
mount_view
hold sh -c "cd $V/workspace/src && echo in && exec sleep 100"
busy 'working directory /workspace/src'
let_go
hold sh -c "exec 3<$V/workspace/f && echo in && exec sleep 100"
busy 'open file /workspace/f'
let_go
hold sh -c "exec 3<$V/workspace && echo in && exec sleep 100"
busy 'open file /workspace'
let_go
hold sh -c "echo in; exec env LD_PRELOAD=$V/workspace/library sleep 100"
check "a library of the view is mapped" wait_for 5 grep -q workspace/library "/proc/$holder/maps"
busy 'mapped file /workspace/library'
let_go
hold sh -c "echo in; exec $V/workspace/program 100"
check "a program of the view runs" wait_for 5 sh -c "readlink /proc/$holder/exe | grep -q program"
busy 'program /workspace/program'
let_go
touch "$(printf 'ws/new\nline')"
hold sh -c "exec 3<'$V/workspace/new
line' && echo in && exec sleep 100"
busy 'open file /workspace/new.x0aline'
let_go
# The command itself, and whoever started it there, are not named to be ended.
from_inside() {
  local what=$1
  shift
  expect_status 1 "$@"
  expect_one_line err
  check_equal "one in the view is told so: $what" "$err" \
    "stella-fsgate: unmount: \"$V\": you are in the view ($what); leave it first, or use --lazy"
  check "it is still mounted" is_mounted
}
from_inside 'working directory /workspace/src' sh -c "cd '$V/workspace/src' && '$FSGATE' unmount '$V'; exit \$?"
from_inside 'working directory /' sh -c "cd '$V' && '$FSGATE' unmount .; exit \$?"
from_inside 'open file /workspace/f' sh -c "'$FSGATE' unmount '$V' <'$V/workspace/f'"
expect_status 0 sh -c "cd '$V/workspace' && cd / && '$FSGATE' unmount '$V'"
mount_view
expect_status 0 sh -c "cd '$V/workspace' && '$FSGATE' unmount --lazy '$V'"
check_not "--lazy takes it off from inside" is_mounted
mount_view
# One that only has the same path in another mount namespace holds another mount.
hold unshare -m --propagation private sh -c "cd $V/workspace && echo in && exec sleep 100"
expect_status 0 "$FSGATE" unmount "$V"
let_go
mount_view
for ((i = 0; i < 10; i++)); do
  background sh -c "cd $V/workspace && exec sleep 100"
done
crowd=("${test_pids[@]: -10}")
all_in() {
  local pid
  for pid in "${crowd[@]}"; do [ "$(readlink "/proc/$pid/cwd")" = "$V/workspace" ] || return 1; done
}
check "ten holders" wait_for 5 all_in
expect_status 1 "$FSGATE" unmount "$V"
expect_one_line err
expect_match err ' and 2 more; end them, or use --lazy$'
check_equal "eight are named" "$(grep -o 'working directory /workspace' "$err_file" | wc -l)" 8
expect_status 0 "$FSGATE" unmount --lazy "$V"
check_not "--lazy takes it off" is_mounted
check "whoever is in it is told" wait_for 5 sh -c "ls /proc/${crowd[0]}/cwd 2>&1 | grep -q 'not connected'"
kill "${crowd[@]}"
wait "${crowd[@]}" 2>/dev/null || true

echo "--- a gateway that hangs"
mount_view
gateway=$(gateway_pid)
hold sh -c "cd $V/workspace && echo in && exec sleep 100"
kill -STOP "$gateway"
busy 'working directory /workspace'
let_go
expect_status 0 timeout 10 "$FSGATE" unmount "$V"
check_not "it is unmounted all the same" is_mounted
kill -CONT "$gateway"
check "and ends when it goes on" wait_for 5 has_ended "$gateway"

echo "--- a gateway that was killed"
mount_view
gateway=$(gateway_pid)
echo written >"$V/workspace/w"
exec 8<"$V/workspace/f"
kill -KILL "$gateway"
check "it has ended" wait_for 5 has_ended "$gateway"
check_equal "whoever looks is told" "$(error_of ls "$V/workspace")" "Transport endpoint is not connected"
check_equal "nothing that was written is lost" "$(cat ws/w)" written
expect_status 1 "$FSGATE" status "$V"
expect_line out "$V: dead: its gateway is gone; the next mount takes the place over, unmount clears it"
mount_view
check_equal "the next mount takes the place over" "$(cat "$V/workspace/w")" written
check_equal "only that one is there" "$(grep -c " $V " /proc/self/mountinfo)" 1
check_equal "an old handle stays dead" "$(error_of cat /dev/fd/8)" "Transport endpoint is not connected"
exec 8<&-
gateway=$(gateway_pid)
kill -KILL "$gateway"
check "killed again" wait_for 5 has_ended "$gateway"
expect_status 0 "$FSGATE" unmount "$V"
check_not "unmount clears it" is_mounted

echo "--- the host's directory goes, or another takes its place"
mount_view --rw "$tmp/user:/user"
mv ws ws.old
mkdir ws
echo other >ws/f
check_equal "what was mounted is what is served" "$(cat "$V/workspace/f")" hello
check "also for writing" sh -c "echo x >$V/workspace/x"
check_equal "where it is now" "$(cat ws.old/x)" x
check_not "and not in what has its name" test -e ws/x
rm -rf ws.old
check "what was removed is gone within the second" wait_for 3 sh -c "! timeout 5 cat $V/workspace/f >/dev/null 2>&1"
check_not "nothing can be made in it" timeout 5 touch "$V/workspace/y"
check_equal "the other mount goes on" "$(cat "$V/user/n")" data
expect_status 0 "$FSGATE" unmount "$V"

echo "--- who may enter"
chmod 755 ws
chmod 644 ws/f
echo secret >ws/s
chmod 600 ws/s
stranger() {
  setpriv --reuid 4321 --regid 4321 --clear-groups "$@"
}
mount_view
check_equal "nobody but who mounted it" "$(error_of stranger cat "$V/workspace/f")" "Permission denied"
check_equal "who may" "$(cat "$V/workspace/f")" other
expect_status 0 "$FSGATE" unmount "$V"
mount_view --allow-other
check_equal "--allow-other: others, as the mode says" "$(stranger cat "$V/workspace/f")" other
check_equal "and no further" "$(error_of stranger cat "$V/workspace/s")" "Permission denied"
check_equal "nor for writing" "$(error_of stranger touch "$V/workspace/new")" "Permission denied"
check_not "nothing was made" test -e ws/new
expect_status 0 "$FSGATE" unmount "$V"
mount_view -r --rw "$tmp/user:/user"
expect_line out "writable: nothing"
check_equal "-r: nothing is writable" "$(error_of touch "$V/workspace/new")" "Read-only file system"
check_equal "in any mount" "$(error_of touch "$V/user/new")" "Read-only file system"
check_equal "but readable" "$(cat "$V/user/n")" data
expect_status 0 "$FSGATE" unmount "$V"
mount_view --runtime none
check_equal "--runtime none: only what was asked for" "$(ls "$V")" workspace
expect_status 0 "$FSGATE" unmount "$V"
mount_view --runtime host
check "--runtime host: what programs need" test -x "$V/usr/bin/env"
check_equal "read-only" "$(error_of touch "$V/usr/new")" "Read-only file system"
as-user 1234 -- "$FSGATE" unmount "$V" 2>stranger.err && fail "a stranger unmounts" || true
check_equal "a stranger does not unmount it" "$(cat stranger.err)" "stella-fsgate: unmount: \"$V\": Operation not permitted"
check "it is still there" is_mounted
expect_status 0 "$FSGATE" unmount "$V"

echo "--- an ordinary user: the same, by fusermount3"
home=$tmp/home
mkdir -p "$home/ws" "$home/mnt"
echo hello >"$home/ws/f"
chown -R 1:1 "$home"
# All of it in one go: as-user has a mount namespace of its own.
cat >as-user.sh <<'S'
F=$1 V=$2/mnt
value() { "$F" status --json "$V" | python3 -c "import json, sys; print(json.load(sys.stdin)['views'][0]['$1'])"; }
ended() { for ((i = 0; i < 100; i++)); do kill -0 "$1" 2>/dev/null || return 0; sleep 0.05; done; return 1; }
"$F" mount --workspace "$2/ws" "$V" >/dev/null && echo "mount: $(cat "$V/workspace/f")"
touch "$V/new" 2>/dev/null || echo "refused: $("$F" status "$V" | grep -o '/new: view-directory EROFS, 1x')"
echo "all: $("$F" status | grep -xc "$V: serving")"
"$F" mount --workspace "$2/ws" "$V" 2>&1 | sed 's/.*": /again: /'
(cd "$V/workspace" && echo in && exec sleep 100) > >(read -r _; exec cat) &
holder=$!
until [ "$(readlink /proc/$holder/cwd)" = "$V/workspace" ]; do sleep 0.05; done
"$F" unmount "$V" 2>&1 | sed "s/.*: the/busy: the/; s/$holder/PID/; s/ bash / sleep /"
kill $holder
wait $holder 2>/dev/null
gateway=$(value pid)
kill -KILL "$gateway"
ended "$gateway" && echo "killed: $(value state)"
"$F" mount --workspace "$2/ws" "$V" >/dev/null && echo "taken over: $(cat "$V/workspace/f")"
gateway=$(value pid)
kill -TERM "$gateway"
ended "$gateway" && echo "ended: $(mountpoint -q "$V" || echo unmounted) $(ls "$STELLA_STATE_DIR/views" | wc -l) sockets"
"$F" mount --workspace "$2/ws" "$V" >/dev/null && "$F" unmount "$V" && echo "unmounted: $(ls -A "$V")"
S
STELLA_STATE_DIR=$home/state expect_status 0 as-user --home "$home" 1 -- bash "$tmp/as-user.sh" "$FSGATE" "$home"
for line in "mount: hello" "refused: /new: view-directory EROFS, 1x" "all: 1" "again: a view is mounted there already" \
  "busy: the view is in use by PID sleep (working directory /workspace); end it, or use --lazy" "killed: dead" \
  "taken over: hello" "ended: unmounted 0 sockets" "unmounted: "; do
  expect_line out "$line"
done
rm -rf "$home/state"

expect_no_leaks "nothing is left" "$before"
finish
