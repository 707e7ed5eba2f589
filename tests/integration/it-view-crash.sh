#!/usr/bin/env bash
# What outlives a gateway: what was acknowledged before a signal or its death, and nothing else, however often it is started
# and killed; and what it holds to while it lives: the place of its mountpoint, what the host mounts later, limits.
. "${STELLA_TEST_LIB:?run this test through meson test}/sh-lib.sh"
preflight root fuse || exit $?

# A gateway that ends while files are open is never told that they are closed: their handles go with its process, which a
# sanitizer takes for a leak.
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0
before=$(list_leaks)
cd "$tmp"
mkdir -p ws mnt
V=$tmp/mnt
H=$tmp/ws

# A gateway of our own, in the foreground, so that its end is seen; its pid in $gateway.
start() {
  : >plan
  "$FSGATE" mount -f --workspace ws "$@" mnt >plan 2>&1 &
  gateway=$!
  test_pids+=("$gateway")
  check "the view is mounted" wait_for 5 grep -q '^writable' plan
}
# ended STATUS: within five seconds.
gone() {
  ! kill -0 "$1" 2>/dev/null || grep -qs '^State:.Z' "/proc/$1/status"
}
ended() {
  local result=0
  if wait_for 5 gone "$gateway"; then
    wait "$gateway" || result=$?
    check_equal "the gateway ends with status $1" "$result" "$1"
    [ "$result" = "$1" ] || sed 's/^/  | /' plan # and what it said
  else
    fail "the gateway does not end"
  fi
  check_not "nothing is mounted" mountpoint -q mnt
}

# Writes numbered lines, and tells each one that write(2) and close(2) have acknowledged.
cat >writer.py <<'END'
import os, sys
n = 0
path, told = sys.argv[1], open(sys.argv[2], "w", buffering=1)
while True:
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        os.write(fd, b"%d\n" % n)
        os.close(fd)
    except OSError as e:
        told.write("error %d\n" % e.errno)
        sys.exit(0)
    told.write("%d\n" % n)
    n += 1
END
enough() {
  [ "$(wc -l <told)" -gt 50 ]
}
# All that was told is on the host; at the most one more, which was written and not told.
check_told() {
  local told written
  told=$(grep -vc error told || true)
  written=$(wc -l <"$H/log")
  check "$told acknowledged writes are on the host" test "$written" -ge "$told"
  check "and no more than one besides" test "$written" -le "$((told + 1))"
  check_equal "each whole and once" "$(cat "$H/log")" "$(seq 0 $((written - 1)))"
}
write_until() {
  rm -f "$H/log" told
  : >told
  start
  background python3 writer.py "$V/workspace/log" told
  writer=$background_pid
  check "writes are acknowledged" wait_for 5 enough
  kill "-$1" "$gateway"
  check "the writer is told within two seconds" wait_for 2 grep -q error told
  wait "$writer" || true
}

echo "--- signals while a program writes"
for signal in TERM INT HUP; do
  write_until "$signal"
  ended 0
  check_told
done
start
kill -TERM "$gateway"
kill -TERM "$gateway" 2>/dev/null || true
kill -INT "$gateway" 2>/dev/null || true
ended 0

echo "--- death while a program writes"
write_until KILL
wait "$gateway" 2>/dev/null || true
# ENOTCONN; or ECONNABORTED for the request that was under way
expect_status 0 grep -qE '^error (107|103)$' told
check_told
check "the mountpoint is stale" sh -c "! stat $V/workspace 2>/dev/null"
start
check_equal "the next start takes it over" "$(ls "$V")" workspace
python3 - "$V/workspace/kept" <<'END'
import mmap, os, sys
fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT, 0o644)
os.write(fd, b"0123456789" * 1000)
os.fsync(fd)
m = mmap.mmap(fd, 10000)
m[0:6] = b"mapped"
m.flush()
os.rename(sys.argv[1], sys.argv[1] + ".renamed")
END
kill -KILL "$gateway"
wait "$gateway" 2>/dev/null || true
check_equal "synced, mapped and renamed files are there" "$(head -c 10 "$H/kept.renamed"; stat -c ' %s' "$H/kept.renamed")" 'mapped6789 10000'
check_not "and not by the old name" test -e "$H/kept"
check "the stale mountpoint can be unmounted" "$FSGATE" unmount mnt
check_not "and is" mountpoint -q mnt

echo "--- a mountpoint that is exchanged"
# exchange.py A B: swaps the two names until it is killed
cat >exchange.py <<'END'
import ctypes, sys
libc = ctypes.CDLL(None)
a, b = sys.argv[1].encode(), sys.argv[2].encode()
while True:
    libc.renameat2(-100, a, -100, b, 2)  # AT_FDCWD, RENAME_EXCHANGE
END
mkdir -p way/mnt elsewhere/mnt
ln -s elsewhere evil
background python3 exchange.py way evil
swapper=$background_pid
mounted=0 refused=0
started_or_gone() {
  grep -q '^writable' plan || gone "$1"
}
# mountpoint(1) does not see a dead one
take_away() {
  if grep -q " $tmp/way/mnt " /proc/self/mountinfo; then
    expect_status 0 "$FSGATE" unmount way/mnt
  fi
}
for ((i = 0; i < 40; i++)); do
  : >plan
  "$FSGATE" mount -f --workspace ws way/mnt >plan 2>&1 &
  gateway=$!
  wait_for 5 started_or_gone "$gateway" || true
  if grep -q '^writable' plan; then mounted=$((mounted + 1)); else refused=$((refused + 1)); fi
  kill "$gateway" 2>/dev/null || true
  wait "$gateway" 2>/dev/null || true
done
kill "$swapper"
wait "$swapper" 2>/dev/null || true
check "mounted or refused, $mounted and $refused of 40" test "$((mounted + refused))" = 40
check_not "nothing is mounted where the link leads" mountpoint -q elsewhere/mnt
# Its path led elsewhere when the gateway ended; the mount is where it was made, and can be taken away from there.
if [ -L way ]; then
  mv -T way link
  mv -T evil way
  mv -T link evil
fi
take_away
expect_no_leaks "nothing stays" "$before"

# The way to the mountpoint becomes one to another mount: that one is not unmounted, by whom ever.
mount -t tmpfs none elsewhere/mnt
: >plan
"$FSGATE" mount -f --workspace ws way/mnt >plan 2>&1 &
gateway=$!
test_pids+=("$gateway")
check "the view is mounted" wait_for 5 grep -q '^writable' plan
mv -T way aside
mv -T evil way
expect_status 1 "$FSGATE" unmount way/mnt
expect_match err 'no view is mounted there'
kill "$gateway"
wait "$gateway" || true
check_equal "the other mount is as it was" "$(stat -f -c %T elsewhere/mnt)" tmpfs
mv -T way evil
mv -T aside way
umount elsewhere/mnt
take_away
expect_no_leaks "nothing stays" "$before"

echo "--- everything as a workspace"
for place in / "$tmp"; do
  expect_status 1 "$FSGATE" mount --workspace "$place" mnt
  expect_one_line err
  expect_match err 'choose a mountpoint outside'
  check_not "nothing is mounted" mountpoint -q mnt
done

echo "--- what the host mounts later, and the flags of ours"
mkdir ws/later
start
mount -t tmpfs none ws/later
echo hidden >ws/later/on-tmpfs
check_not "a mount made later does not show" test -e "$V/workspace/later/on-tmpfs"
check "its mountpoint is still the directory below" sh -c "echo below >$V/workspace/later/f"
umount ws/later
check_equal "which has what was written" "$(cat ws/later/f)" below
check "nosuid and nodev" grep -qE " $V [^-]*nosuid[^-]*nodev|$V [^-]*nodev[^-]*nosuid" /proc/self/mountinfo
kill "$gateway"
ended 0

echo "--- an optional mount whose directory is missing"
cat >policy.json <<END
{"version": 1, "filesystem": {"working_dir": "/workspace", "workspace_root": "$H", "runtime": "none", "mounts": [
  {"host_path": "$tmp/absent", "view_path": "/opt/x", "access": "rw", "optional": true}]}}
END
: >plan
"$FSGATE" mount -f --policy policy.json mnt >plan 2>&1 &
gateway=$!
test_pids+=("$gateway")
check "it starts" wait_for 5 grep -q '^writable' plan
mkdir absent
echo late >absent/f
check_not "made later, it opens no hole" test -e "$V/opt/x/f"
kill "$gateway"
ended 0
sed 's/, "optional": true//' policy.json >required.json
rm -r absent
expect_status 2 "$FSGATE" mount --policy required.json mnt
expect_match err 'absent": No such file'

echo "--- limits of fds"
: >plan
(
  ulimit -S -n 256
  exec "$FSGATE" mount -f --workspace ws mnt
) >plan 2>&1 &
gateway=$!
test_pids+=("$gateway")
check "a low soft limit is raised" wait_for 5 grep -q '^writable' plan
limits=$(awk '/^Max open files/ { print $4, $5 }' "/proc/$gateway/limits")
check_equal "to the hard one" "${limits% *}" "${limits#* }"
kill "$gateway"
ended 0
expect_status 1 sh -c "ulimit -n 128; exec $FSGATE mount --workspace ws mnt"
expect_one_line err
expect_match err 'limit of open files \(128\) is too low'

echo "--- a start that is asking when the gateway is killed"
expect_status 0 "$FSGATE" mount --workspace ws mnt
gateway=$(gateway_of "$V")
kill -STOP "$gateway"
"$FSGATE" mount --workspace ws mnt >asking 2>&1 &
asking=$!
test_pids+=("$asking")
# Its probe is a child that sleeps in the kernel, as long as nobody answers.
probe_waits() {
  local child

  child=$(cat "/proc/$asking/task/$asking/children" 2>/dev/null) && [ -n "$child" ] &&
    grep -qs '^State:.[SD]' "/proc/${child% }/status"
}
check "it asks" wait_for 1 probe_waits
kill -KILL "$gateway"
result=0
wait "$asking" || result=$?
check_equal "it takes the dead view over" "$result" 0
[ "$result" = 0 ] || sed 's/^/  | /' asking
check "and serves it" test -d "$V/workspace"
expect_status 0 "$FSGATE" unmount mnt

echo "--- forty starts, every third ended by SIGKILL"
for ((i = 1; i <= 40; i++)); do
  run "$FSGATE" mount --workspace ws mnt
  [ "$status" = 0 ] || fail "start $i" "$err"
  echo "$i" >"$V/workspace/round" || fail "write $i"
  gateway=$(gateway_of "$V")
  if ((i % 3 == 0)); then
    kill -KILL "$gateway"
  else
    "$FSGATE" unmount mnt || fail "unmount $i"
  fi
  wait_for 5 gone "$gateway" || fail "the end of $i"
done
check_equal "all of them wrote" "$(cat ws/round)" 40
expect_no_leaks "nothing is left" "$before"
finish
