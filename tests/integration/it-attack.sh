#!/usr/bin/env bash
# The programs of tests/attack in a sandbox, where nothing of what they try may work, and outside, where it does.
#
# shellcheck disable=SC1091,SC2016,SC2154 # what sh-lib.sh sets; texts that the inner shell expands
. "${STELLA_TEST_LIB:?run this test through meson test}/sh-lib.sh"
preflight root fuse userns seccomp || exit $?

# Where the user of the last part reaches them, with copies that have privileges on the host.
attacks=$tmp/attacks
mkdir "$attacks" "$tmp/ws"
for program in "$STELLA_TEST_BUILD"/tests/attack/attack-*; do
  [ -d "$program" ] || cp "$program" "$attacks/"
done
"$STELLA_TEST_BUILD/tests/attack/list-calls" >"$attacks/calls"
mount -t tmpfs -o mode=755 none /srv
cp "$attacks/attack-privilege" "$attacks/set-id"
cp "$attacks/attack-privilege" "$attacks/with-caps"
cp "$attacks/attack-privilege" "$tmp/ws/set-id"
chmod 6755 "$attacks/set-id" "$tmp/ws/set-id"
# a file capability as the kernel keeps it: version 2, effective, cap_net_raw and cap_sys_admin permitted
python3 - "$attacks/with-caps" <<'END'
import os, struct, sys
os.setxattr(sys.argv[1], "security.capability", struct.pack("<5I", 0x02000001, 1 << 13 | 1 << 21, 0, 0, 0))
END
ws=$tmp/ws
cd "$ws" || exit 1
calls_ro=$(snapshot "$attacks")

# tries WHAT: the lines of the last run, each a check of its own; those that came out wrong are shown.
tries() {
  local wrong
  wrong=$(grep -c '^WRONG' "$out_file" || true)
  if [ "$status" = 0 ] && [ "$wrong" = 0 ] && grep -Eq '^[1-9][0-9]* tries, 0 wrong$' "$out_file"; then
    pass "$1: $(tail -n 1 "$out_file")"
  else
    fail "$1: status $status" "$(grep -E '^WRONG|can be|not what|^open' "$out_file"; tail -n 3 "$out_file" "$err_file")"
  fi
}

policy=()
inside() { # WHO PROGRAM ARGUMENT...
  local who=$1 name=$2
  shift 2
  run "${as[@]}" "$EXEC" run --workspace "$ws" --ro "$attacks:/opt/attack" "${policy[@]}" -- "/opt/attack/attack-$name" "$@"
  tries "$who: $name"
}

# What can be tried in namespaces of the test's own; the network is the host's, none is made.
outside() { # PROGRAM ARGUMENT...
  local name=$1
  shift
  run unshare --mount --uts --ipc --pid --cgroup --fork --kill-child --mount-proc "$attacks/attack-$name" --outside "$@"
  tries "outside: $name"
}

# Listeners of the host, and a process that must survive.
python3 - "$ws" >"$tmp/ports" <<'END' &
import os, select, socket, sys
def listen(family, address, kind=socket.SOCK_STREAM):
    s = socket.socket(family, kind)
    s.bind(address)
    if kind == socket.SOCK_STREAM:
        s.listen(20)
    return s
tcp = listen(socket.AF_INET, ("127.0.0.1", 0))
udp = listen(socket.AF_INET, ("127.0.0.1", 0), socket.SOCK_DGRAM)
try:
    tcp6 = listen(socket.AF_INET6, ("::1", 0))
except OSError:
    tcp6 = None
name = "stella-attack-%d-%d" % (os.getpid(), tcp.getsockname()[1])
sockets = [listen(socket.AF_UNIX, "\0" + name)]
for path in (sys.argv[1] + "/socket", "/srv/socket"):
    sockets.append(listen(socket.AF_UNIX, path))
    os.chmod(path, 0o777)
print(tcp.getsockname()[1], udp.getsockname()[1], tcp6.getsockname()[1] if tcp6 else 0, name, flush=True)
while True:
    data, peer = udp.recvfrom(16)
    udp.sendto(data, peer)
END
test_pids+=("$!")
wait_for 10 test -s "$tmp/ports"
read -r tcp udp tcp6 abstract <"$tmp/ports"
v6=()
[ "$tcp6" = 0 ] || v6=(tcp6 "$tcp6")
setpriv --reuid 1234 --regid 1234 --clear-groups sleep 1000 &
bystander=$!
test_pids+=("$bystander")
expect_status 0 "$EXEC" run --workspace "$ws" -- true
before=$(list_leaks)

# Outside first: a try that does not work there proves nothing.
for name in init mounts namespaces privilege proc processes sockets terminal; do
  case $name in
  processes) outside processes ;;
  sockets) outside sockets tcp "$tcp" 0 udp "$udp" 0 ${v6[0]+"${v6[@]}" 0} abstract "$abstract" 0 path "$ws/socket" 0 path /srv/socket 0 ;;
  *) outside "$name" ;;
  esac
done
outside calls "$attacks/calls"
run setpriv --reuid 1234 --regid 1234 --clear-groups "$attacks/set-id" --look
check 'outside: set-id bits give privilege' test "$status" -ge 200
run setpriv --reuid 1234 --regid 1234 --clear-groups "$attacks/with-caps" --look
check_equal 'outside: file capabilities give privilege' "$status" 201
run setpriv --reuid 1234 --regid 1234 --clear-groups "$attacks/attack-processes" --outside "$bystander"
tries 'outside: processes of the same user'

programs='/opt/attack/set-id /opt/attack/with-caps /workspace/set-id'
all_inside() { # WHO
  local refused='ECONNREFUSED|ENETUNREACH|EADDRNOTAVAIL'
  for name in init mounts namespaces proc terminal; do
    inside "$1" "$name"
  done
  # shellcheck disable=SC2086 # several
  inside "$1" privilege $programs
  inside "$1" processes "$bystander" 999
  inside "$1" sockets tcp "$tcp" "$refused" udp "$udp" "$refused" ${v6[0]+"${v6[@]}" "$refused"} \
    abstract "$abstract" 'ECONNREFUSED|EPERM' path /workspace/socket "$mounted" path /srv/socket ENOENT
  check "$1: the bystander lives" kill -0 "$bystander"
}

as=()
policy=(--no-network)
mounted=ECONNREFUSED
all_inside root
# the filter is the same for everybody
inside root calls /opt/attack/calls

# A network that is shared, where the host's loopback is reached on purpose; its abstract sockets are not, where the
# kernel can tell them apart.
policy=()
expect_status 0 "$EXEC" run --json --workspace "$ws" -- true
scoped='ECONNREFUSED|EPERM'
! grep -q 'limits_unenforced": \[[^]]' "$out_file" || scoped='0'
inside 'host network' sockets tcp "$tcp" 0 udp "$udp" 0 ${v6[0]+"${v6[@]}" 0} abstract "$abstract" "$scoped" \
  path /workspace/socket ECONNREFUSED path /srv/socket ENOENT

# A command that is user 0 inside has no more.
cat >"$tmp/root.json" <<END
{"version": 1, "process": {"user": "root"}, "network": {"mode": "disabled"},
 "filesystem": {"working_dir": "/workspace", "mounts": [
  {"host_path": "$ws", "view_path": "/workspace", "access": "rw"},
  {"host_path": "$attacks", "view_path": "/opt/attack", "access": "ro"}]}}
END
as_user_zero() { # PROGRAM ARGUMENT...
  local name=$1
  shift
  run "$EXEC" run --policy "$tmp/root.json" -- "/opt/attack/attack-$name" "$@"
  tries "user 0 inside: $name"
}
for name in init mounts namespaces proc; do
  as_user_zero "$name"
done
# shellcheck disable=SC2086
as_user_zero privilege $programs

# All of it for an ordinary user, whose sandbox runs with the identity of the host's processes.
ws=$tmp/home/ws
mkdir -p "$ws"
cp -p "$attacks/set-id" "$ws/"
ln "$tmp/ws/socket" "$ws/socket"
chown 1234:1234 "$tmp/home" "$ws"
as=(as-user --home "$tmp/home" 1234 --)
policy=(--no-network)
all_inside user

# And all of it where bubblewrap has made the namespaces, and there is no gateway: a socket that the host has bound in a
# mounted directory is then one of the command's, which the result says.
mounted=0
for backend in bwrap; do
  if ! command -v "$backend" >/dev/null; then
    skip "backend $backend" "there is no $backend"
    continue
  fi
  policy=(--no-network --backend "$backend")
  all_inside "user, $backend"
  inside "user, $backend" calls /opt/attack/calls
  expect_status 0 "${as[@]}" "$EXEC" run --json --workspace "$ws" "${policy[@]}" -- true
  expect_match out '"limits_unenforced": \["filesystem.sockets", "filesystem.hidden"\]'
  as=()
  ws=$tmp/ws
  all_inside "root, $backend"
done

expect_unchanged 'the programs are as they were' "$attacks" "$calls_ro"
check 'the workspace is readable and holds nothing new' test "$(ls -A "$tmp/ws")" = "$(printf 'set-id\nsocket')"
expect_no_leaks 'nothing is left' "$before"
finish
