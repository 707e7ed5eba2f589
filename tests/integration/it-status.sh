#!/usr/bin/env bash
# What `stella-fsgate status` says: every refusal with its reason, and its allowed twin with none; counters; views
# that are dead, silent or somebody else's; who may ask, and what askers may not do.
. "${STELLA_TEST_LIB:?run this test through meson test}/sh-lib.sh"
preflight root fuse || exit $?

before=$(list_leaks)
cd "$tmp"
mkdir -p ws/way/to ws/sub ws/state ws/moving rofs user tools/bin outside mnt mnt2
echo hello >ws/f
echo tool >tools/bin/t
echo secret >outside/secret
V=$tmp/mnt
# The state directory lies in the workspace: its sockets must not be met through the view.
export STELLA_STATE_DIR=$tmp/ws/state

# status_value PYTHON: an expression about the first view's object `v`, from status --json.
status_value() {
  "$FSGATE" status --json "$V" | python3 -c "
import json, sys
v = json.load(sys.stdin)['views'][0]
print($1)"
}
quiet_status() {
  "$FSGATE" status "$V" >/dev/null
}
# What is known of the record; `mark` looks, the checks below look once more each.
count=0 last=0
mark() {
  read -r count last < <(status_value "v['denials']['total'], v['denials']['last']")
}
# denied OP PATH REASON ERRNO COMMAND...: it fails, and exactly this is recorded.
denied() {
  local op=$1 path=$2 reason=$3 errno=$4
  shift 4
  check_not "refused: $*" sh -c '"$@" 2>/dev/null' sh "$@"
  check_equal "  recorded once, as $reason" \
    "$(status_value "[(r['op'], r['path'], r['reason'], r['errno']) for r in v['denials']['rows'] if r['seq'] > $last], v['denials']['total'], v['denials']['last']")" \
    "[('$op', '$path', '$reason', '$errno')] $((count += 1)) $((last += 1))"
}
# allowed COMMAND...: it works, and nothing is recorded.
allowed() {
  check "allowed: $*" "$@"
  check_equal "  nothing is recorded" "$(status_value "v['denials']['total']")" "$count"
}

mount -t tmpfs none ws/sub
mount -t tmpfs none rofs
expect_status 0 "$FSGATE" mount --workspace ws --user-dir user --ro "$tmp/tools:/opt/stella" --rw "$tmp/rofs:/rofs" \
  --ro "$tmp/tools:/workspace/way/to/tools" --runtime host "$V"
tools=$(snapshot tools)
etc=$(stat -c '%Z %Y' /etc)

echo "--- every reason, and its twin"
mark
denied create /opt/stella/x read-only-mount EROFS touch "$V/opt/stella/x"
allowed touch "$V/workspace/x"
denied open /opt/stella/bin/t read-only-mount EROFS sh -c "echo x >>$V/opt/stella/bin/t"
allowed cat "$V/opt/stella/bin/t"
denied unlink /opt/stella/bin/t read-only-mount EROFS rm -f "$V/opt/stella/bin/t"
denied setattr /opt/stella/bin/t read-only-mount EROFS chmod 700 "$V/opt/stella/bin/t"
denied access /opt/stella/bin/t read-only-mount EROFS test -w "$V/opt/stella/bin/t"
allowed test -r "$V/opt/stella/bin/t"
denied rename /opt/stella/x read-only-mount EROFS mv -T "$V/workspace/x" "$V/opt/stella/x"
denied mkdir /d view-directory EROFS mkdir "$V/d"
allowed mkdir "$V/workspace/d"
denied create /workspace/sub/x stand-in EROFS touch "$V/workspace/sub/x"
denied rmdir /workspace/sub stand-in EBUSY rmdir "$V/workspace/sub"
allowed rmdir "$V/workspace/d"
denied create /workspace/state/views/x private-directory EROFS touch "$V/workspace/state/views/x"
allowed touch "$V/workspace/state/x"
check_equal "the sockets do not show" "$(ls -A "$V/workspace/state/views")" ""
denied rename /workspace/way pinned-directory EBUSY mv "$V/workspace/way" "$V/workspace/w2"
denied rmdir /workspace/way/to/tools pinned-directory EBUSY rmdir "$V/workspace/way/to/tools"
allowed mv "$V/workspace/x" "$V/workspace/y"
denied link /user/l cross-mount EXDEV ln "$V/workspace/f" "$V/user/l"
echo linked >ws/linked
allowed ln "$V/workspace/linked" "$V/workspace/l"
denied mknod /workspace/n device-node EPERM mknod "$V/workspace/n" c 1 3
allowed mkfifo "$V/workspace/n"
denied setattr /workspace/f chown EPERM chown 77 "$V/workspace/f"
allowed chown 0 "$V/workspace/f"
denied lookup /etc/shadow hidden ENOENT cat "$V/etc/shadow"
allowed sh -c "! cat $V/workspace/absent 2>/dev/null"
ln -s "$tmp/outside/secret" ws/escape
ln -s /user ws/stays
ln -s loop ws/loop
denied readlink /workspace/escape symlink-escape EACCES cat "$V/workspace/escape"
check_equal "  with the link's text" "$(status_value "[r['target'] for r in v['denials']['rows'] if r['reason'] == 'symlink-escape']")" \
  "['$tmp/outside/secret']"
allowed ls "$V/workspace/stays"
if setfattr -n user.a -v 1 ws/f 2>/dev/null; then
  denied setxattr /workspace/f xattr-namespace EPERM setfattr -n trusted.a -v 1 "$V/workspace/f"
  allowed setfattr -n user.a -v 2 "$V/workspace/f"
  allowed sh -c "! getfattr -n trusted.a $V/workspace/f 2>/dev/null"
else
  skip "attributes" "setfattr or a file system with attributes is missing"
fi
echo mine >user/mine
chown 1:1 user/mine
chmod 600 user/mine
chown 2:2 user
denied open /user/mine host-permission EACCES cat "$V/user/mine"
chown 0:0 user user/mine
check_equal "the read-only tree is as it was" "$(snapshot tools)" "$tools"
check_equal "/etc too" "$(stat -c '%Z %Y' /etc)" "$etc"
check_equal "what leads out is as it was" "$(cat outside/secret)" secret

ln -s "/workspace/turns/x" ws/turning
ln -s /workspace/turns ws/turns
mark
denied readlink /workspace/turning symlink-loop ELOOP cat "$V/workspace/turning"
allowed touch "$V/rofs/x"
mount -o remount,ro rofs
denied create /rofs/y host-read-only EROFS touch "$V/rofs/y"
mount -o remount,rw rofs
allowed touch "$V/rofs/y"
# Where the kernel asks again after ESTALE there may be more than one of these.
by_reason() {
  status_value "v['denials']['by_reason'].get('$1', 0)"
}
check "a directory that stays: who is in it may make names" sh -c "cd $V/workspace/moving && touch in"
check_equal "  nothing is recorded" "$(by_reason moved-out)" 0
check_not "one that the host has moved out: who is in it may not" \
  sh -c "cd $V/workspace/moving && mv $tmp/ws/moving $tmp/outside/moved && touch out 2>/dev/null"
check "  recorded as moved-out" test "$(by_reason moved-out)" -gt 0
check_equal "  nothing was made" "$(ls outside/moved)" in

echo "--- ordinary errors are no denials"
mark
mkdir -p ws/full/x
allowed sh -c "! rmdir $V/workspace/full 2>/dev/null"
allowed sh -c "! mkdir $V/workspace/full 2>/dev/null"
allowed sh -c "! ls $V/workspace/f/x 2>/dev/null"

echo "--- equal ones share a row"
for ((i = 0; i < 5; i++)); do touch "$V/opt/stella/same" 2>/dev/null || true; done
check_equal "and are counted" "$(status_value "[r['count'] for r in v['denials']['rows'] if r['path'] == '/opt/stella/same']")" "[5]"
for ((i = 0; i < 600; i++)); do echo "$V/opt/stella/flood$i"; done | xargs touch 2>/dev/null || true
check_equal "a flood is bounded" "$(status_value "len(v['denials']['rows'])")" 256
check "what went is counted" test "$(status_value "v['denials']['dropped']")" -gt 300
check_equal "nothing is lost from the counts" "$(status_value "sum(v['denials']['by_reason'].values()) == v['denials']['total']")" True
check_equal "nor from rows and dropped" \
  "$(status_value "sum(r['count'] for r in v['denials']['rows']) + v['denials']['dropped'] == v['denials']['total']")" True
# Names that make the answer as large as it can be.
deep=$V/opt/stella
for ((i = 0; i < 14; i++)); do deep+=/$(printf '\001%.0s' $(seq 255)); done
mkdir -p "tools${deep#"$V/opt/stella"}"
for ((i = 0; i < 300; i++)); do printf '%s\0' "$deep/$i"; done | xargs -0 -n 50 touch 2>/dev/null || true
check_equal "an answer stays bounded" "$(status_value "len(json.dumps(v)) < 2 * 1024 * 1024 and v['denials']['rows_left_out'] > 0")" True

echo "--- what else it says"
expect_status 0 "$FSGATE" status "$V"
expect_line out "$V: serving"
expect_match out '^  mounts +/etc  ro  /etc$'
expect_match out '^  writable +/workspace /rofs /user$'
expect_match out '^  links +rewritten$'
expect_match out '^  cache +auto, 1000 ms$'
expect_match out '^  passthrough +(on|on, .+|off: .+)$'
expect_match out '^  requests +[0-9]+: .*lookup [0-9]+'
expect_match out '^  denials +[0-9]+: .*read-only-mount [0-9]+'
expect_match out '^    touch|^    create /opt/stella/'
check "a long path is shortened for people" sh -c "! '$FSGATE' status '$V' | grep -q '.\{600\}'"
touch "$V/opt/stella/$(printf 'c1\302\233m')" 2>/dev/null || true
touch "$V/opt/stella/$(printf 'bad\377')" 2>/dev/null || true
check "nor C1 controls with --json" sh -c "'$FSGATE' status --json '$V' | grep -q 'c1.u009bm'"
check_equal "a path that is not UTF-8 is given in base64" \
  "$(status_value "v['denials']['rows'][-1]['path']['b64']" | base64 -d | od -An -c | tr -d ' \n')" '/opt/stella/bad377'
check "control characters do not reach the terminal" sh -c "! '$FSGATE' status '$V' | LC_ALL=C grep -q '[^[:print:]]'"
check_equal "numbers are numbers" "$(status_value "all(type(v[k]) is int for k in ('uid', 'pid', 'up_ms', 'inodes', 'threads')) and v['state'] == 'serving' and v['reason'] is None")" True
check_equal "the gateway is the one that was started" "$(cat "/proc/$(status_value "v['pid']")/comm")" stella-fsgate
opens=$(status_value "v['requests']['open']")
cat "$V/workspace/f" >/dev/null
check_equal "a request is counted" "$(status_value "v['requests']['open']")" $((opens + 1))
exec 8<"$V/workspace/f"
check_equal "open files" "$(status_value "v['fds']['files']")" 1
exec 8<&-
check "closed ones" wait_for 2 sh -c "'$FSGATE' status '$V' | grep -q '; 0 of [0-9]* files open'"

echo "--- bounds: files of the gateway, files that others hold a lease on"
expect_status 0 bash -c "ulimit -n 1024; exec '$FSGATE' mount --workspace ws '$tmp/mnt2'"
cat >open-many.py <<'P'
import os, sys
# How many of 600 times a file can be opened at once.
fds = []
try:
    for i in range(600):
        fds.append(os.open(sys.argv[1], os.O_RDONLY))
except OSError as e:
    print(e.strerror)
print(len(fds) > 100)
P
V=$tmp/mnt2
check_equal "past the budget" "$(python3 open-many.py "$V/workspace/f" | tr '\n' ' ')" "Too many open files in system True "
check "  recorded as fd-budget" test "$(by_reason fd-budget)" -gt 0
check "  afterwards there is room again" wait_for 5 sh -c "cat $V/workspace/f >/dev/null"
cat >lease.py <<'P'
import fcntl, os, signal, sys, time
# Holds a lease on a file, and does not let go when it is asked to.
fd = os.open(sys.argv[1], os.O_RDONLY)
signal.signal(signal.SIGIO, signal.SIG_IGN)
fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_RDLCK)
print("held", flush=True)
time.sleep(100)
P
echo leased >ws/leased
chown 0:0 ws/leased
exec 7< <(exec python3 lease.py ws/leased)
lease_pid=$!
test_pids+=("$lease_pid")
read -r line <&7
check_equal "a lease" "$line" held
writers=()
for ((i = 0; i < 8; i++)); do
  background sh -c "echo $i >>$V/workspace/leased" 2>/dev/null
  writers+=("$background_pid")
done
was_refused() {
  test "$(by_reason host-lease)" -gt 0
}
check "some of those who want to write are turned away: host-lease" wait_for 10 was_refused
kill "$lease_pid"
wait "$lease_pid" 2>/dev/null || true
exec 7<&-
wait "${writers[@]}" || true
check_equal "the others wrote" "$(wc -l <ws/leased)" $((9 - $(by_reason host-lease)))
expect_status 0 "$FSGATE" unmount "$V"
V=$tmp/mnt

echo "--- several views, and none"
expect_status 0 "$FSGATE" mount -r --links original --workspace user "$tmp/mnt2"
expect_status 0 "$FSGATE" status
expect_line out "$V: serving"
expect_line out "$tmp/mnt2: serving"
expect_match out '^  links +original$'
expect_match out '^  writable +nothing$'
expect_status 0 "$FSGATE" status --json
check_equal "all of them in one object" "$(python3 -c "import json; d = json.load(open('$out_file')); print(d['version'], len([v for v in d['views'] if v['mountpoint'].startswith('$tmp')]))")" "1 2"
expect_status 0 "$FSGATE" unmount "$tmp/mnt2"
expect_status 1 "$FSGATE" status "$tmp/mnt2"
expect_one_line err
expect_match err 'no view is mounted there'
expect_status 2 "$FSGATE" status --frobnicate
expect_one_line err

echo "--- who may ask, and how"
socket=$(echo "$STELLA_STATE_DIR"/views/*.sock)
check_equal "the directory is its owner's alone" "$(stat -c %a "$STELLA_STATE_DIR/views")" 700
cat >ask.py <<'P'
import os, socket, sys
# ask.py SOCKET UID BYTES: what the gateway answers to these bytes, from a process of that user.
s = socket.socket(socket.AF_UNIX)
fd = os.open(os.path.dirname(sys.argv[1]), os.O_PATH)
os.chdir(fd)
if sys.argv[2] != "0":
    os.setgroups([]); os.setgid(int(sys.argv[2])); os.setuid(int(sys.argv[2]))
s.settimeout(5)
got = b""
try:
    s.connect(os.path.basename(sys.argv[1]))
    s.sendall(sys.argv[3].replace("\\n", "\n").encode())
    while not got.endswith(b"\n"):
        more = s.recv(65536)
        if not more:
            break
        got += more
except ConnectionError:
    pass
print(got.decode()[:60] or "closed")
P
chmod 755 ws "$STELLA_STATE_DIR" "$STELLA_STATE_DIR/views"
check_equal "the owner" "$(python3 ask.py "$socket" 0 '{"denials": {"since": 1000000}}\n' | cut -c 1-12)" '{"denials":{'
check_equal "another user is turned away, even where the directory lets in" "$(python3 ask.py "$socket" 1 '{"status": true}\n')" closed
chmod 700 "$STELLA_STATE_DIR/views"
check_equal "no JSON" "$(python3 ask.py "$socket" 0 'hello\n')" '{"error":{"message":"a request is one JSON object on one lin'
check_equal "no request" "$(python3 ask.py "$socket" 0 '{"frob": 1}\n')" '{"error":{"message":"unknown request"}}'
check_equal "a session's word" "$(python3 ask.py "$socket" 0 '{"boundary": "start"}\n' | cut -c 1-9)" '{"error":'
check_equal "nesting" "$(python3 ask.py "$socket" 0 "$(printf '[%.0s' $(seq 4000))\n" | cut -c 1-9)" '{"error":'
check_equal "a line without end" "$(python3 ask.py "$socket" 0 "$(printf 'x%.0s' $(seq 5000))")" closed
cat >stuck.py <<'P'
import os, socket, sys, time
# Eight that ask and never read, eight that say nothing.
os.chdir(os.path.dirname(sys.argv[1]))
held = []
for i in range(16):
    s = socket.socket(socket.AF_UNIX)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    s.connect(os.path.basename(sys.argv[1]))
    if i < 8:
        s.sendall(b'{"status": true}\n' * 100)
    held.append(s)
print("stuck", flush=True)
time.sleep(100)
P
exec 7< <(exec python3 stuck.py "$socket")
stuck_pid=$!
test_pids+=("$stuck_pid")
read -r line <&7
check_equal "stuck askers" "$line" stuck
check_equal "the view answers all the same" "$(timeout 5 cat "$V/workspace/f")" hello
expect_status 1 timeout 10 "$FSGATE" status "$V"
expect_match out ': silent: its gateway does not answer'
kill "$stuck_pid"
wait "$stuck_pid" 2>/dev/null || true
exec 7<&-
check "and at the door once they are gone" wait_for 5 quiet_status
gateway=$(status_value "v['pid']")

echo "--- a gateway that hangs, and one that is gone"
kill -STOP "$gateway"
expect_status 1 timeout 15 "$FSGATE" status --json "$V"
check_equal "silent, and every key is there" \
  "$(python3 -c "import json; v = json.load(open('$out_file'))['views'][0]; print(v['state'], v['pid'], v['denials'], len(v))")" "silent None None 17"
kill -CONT "$gateway"
check "it goes on" wait_for 5 quiet_status
kill -KILL "$gateway"
check "dead" wait_for 5 sh -c "'$FSGATE' status '$V' | grep -q ': dead: '"
expect_status 1 "$FSGATE" status "$V"
expect_match out ': dead: its gateway is gone'
expect_status 0 "$FSGATE" status
expect_line out "$V: dead: its gateway is gone; the next mount takes the place over, unmount clears it"
expect_status 0 "$FSGATE" unmount "$V"
expect_status 0 "$FSGATE" status
expect_no_match out "^$tmp"
expect_status 0 "$FSGATE" mount --workspace user "$V"
check_equal "the dead one's socket has gone with the next mount" "$(ls "$STELLA_STATE_DIR/views" | wc -l)" 1

echo "--- somebody else's"
STELLA_STATE_DIR=$tmp/elsewhere expect_status 1 as-user 1234 -- "$FSGATE" status "$V"
expect_match out ': silent: it belongs to user 0'
expect_status 0 as-user 1234 -- env STELLA_STATE_DIR=/tmp "$FSGATE" status
expect_no_match out "^$tmp"
expect_status 0 "$FSGATE" unmount "$V"
umount ws/sub rofs
export STELLA_STATE_DIR=$tmp/state
rm -rf ws/state

echo "--- the published list"
for reason in $(sed -n 's/^.*X([A-Z_]*, "\([a-z-]*\)".*/\1/p' "$STELLA_TEST_LIB/../../common/denial-reason.h"); do
  check "the manual page has $reason" grep -Fqx ".B ${reason//-/\\-}" "$STELLA_TEST_LIB/../../fsgate/stella-fsgate.1"
done
expect_no_leaks "nothing is left" "$before"
finish
