#!/usr/bin/env bash
# What runs commands: the same promises by fsgate and by bwrap, for root and for an ordinary user; what bwrap cannot
# promise is refused and named; and which one is taken when nobody says.
#
# shellcheck disable=SC1091,SC2016,SC2154 # what sh-lib.sh sets; texts that an inner shell expands
. "${STELLA_TEST_LIB:?run this test through meson test}/sh-lib.sh"
preflight root fuse userns || exit $?
if ! command -v bwrap >/dev/null; then
  skip 'bwrap' 'there is none'
  finish
fi

# FUSE connections are of the whole machine: what else a session makes is enough to tell whether one is left.
connections_too=$(declare -f list_leaks)
eval "${connections_too/list_leaks/list_all_leaks}"
list_leaks() { list_all_leaks | grep -v '^connection ' || true; }

USER_ID=1234
home=$tmp/home
mkdir -p "$home" "$tmp/ro"
echo tool >"$tmp/ro/t"

# A workspace with everything in it that the checks look at, in $ws, of the user $as runs as.
make_workspace() { # OWNER
  ws=$(mktemp -d "$home/ws-XXXXXX")
  chmod 755 "$ws"
  mkdir -p "$ws/way/ro" "$ws/way/other" "$ws/place" "$home/state"
  echo kept >"$ws/way/ro/f"
  echo mine >"$ws/f"
  ln -s /etc/passwd "$ws/link-out"
  ln -s "$tmp/ro/t" "$ws/link-host"
  echo '{"version": 1, "filesystem": {"working_dir": "/workspace", "mounts": [
    {"host_path": "'"$ws"'", "view_path": "/workspace", "access": "rw"},
    {"host_path": "'"$ws/way/ro"'", "view_path": "/opt/ro", "access": "ro"},
    {"host_path": "'"$tmp/ro"'", "view_path": "/workspace/place", "access": "ro"}]}, "env": {"FROM_POLICY": "yes"},
    "limits": {"output_bytes": 100}}' >"$ws.json"
  chown -Rh "$1:$1" "$home" "$tmp/ro"
}

in_view() { # COMMAND
  "${as[@]}" "$EXEC" sh --backend "$backend" --policy "$ws.json" "$1"
}

same_promises() { # WHO
  echo "--- $1"
  local who=$1 ro_tree outside_tree
  ro_tree=$(snapshot "$ws/way/ro")
  outside_tree=$(snapshot "$tmp/ro")

  expect_status 0 in_view 'cat f; echo new >made; cat /opt/ro/f /workspace/place/t; id -u; pwd; hostname'
  check_equal "$who: what is there" "$(tr '\n' ' ' <"$out_file")" 'mine kept tool 1000 /workspace sandbox '
  check_equal "$who: the host has what was made" "$(cat "$ws/made")" new
  check_equal "$who: by its owner" "$(stat -c %u:%g "$ws/made")" "$(stat -c %u:%g "$ws/f")"
  rm "$ws/made"

  expect_status 0 in_view 'for f in /opt/ro/f way/ro/f /workspace/place/t; do echo x >>$f; touch $f; rm $f; chmod 777 $f; done; touch /opt/ro/n way/ro/n place/n; ln f way/ro/l; mv f way/ro/; true'
  check_equal "$who: every way to write was refused" "$(grep -cE 'Read-only file system|Invalid cross-device link|override|cannot remove' "$err_file")" "$(wc -l <"$err_file")"
  expect_unchanged "$who: the read-only directory is as it was, by either path" "$ws/way/ro" "$ro_tree"
  expect_unchanged "$who: and so is the other" "$tmp/ro" "$outside_tree"
  expect_status 0 in_view 'mv way way2; mv way/ro way/ro2; rmdir way/ro; rm -rf way/ro; rmdir place; mv place place2; true'
  check_equal "$who: none of these is moved or removed" "$(grep -cE 'busy|Read-only|cannot remove' "$err_file")" "$(wc -l <"$err_file")"
  check "$who: the host still has them" test -e "$ws/way/ro/f" -a -d "$ws/place"
  expect_status 0 in_view 'mkdir way/new; mv way/other way/moved; mv way/moved way/other; rmdir way/new; mv f g; mv g f'

  expect_status 1 in_view 'cat link-host'
  expect_status 0 in_view 'grep -c agent link-out; ls -d /root /home /srv 2>/dev/null; ls -A /run; ls -A /tmp'
  check_equal "$who: nothing else is there" "$out" 1
  expect_status 0 in_view 'cat /etc/shadow /etc/gshadow /etc/ssh/*key 2>/dev/null | wc -c; head -c 1 /etc/resolv.conf | wc -c; ls /etc/ssl >/dev/null'
  check_equal "$who: no secrets, but a resolv.conf" "$(tr '\n' ' ' <"$out_file")" '0 1 '
  expect_status 0 in_view 'touch /tmp/a /var/tmp/a /dev/shm/a && (touch /a || touch /usr/a || touch /etc/a || touch /dev/a || echo none)'
  expect_line out none

  expect_status 0 in_view 'echo $HOME $FROM_POLICY $TMPDIR $FROM_CALLER; grep -E "^(CapEff|NoNewPrivs|Seccomp):" /proc/self/status; ls /proc/self/fd; test ! -w /proc/sys/kernel/hostname'
  expect_line out '/workspace yes /tmp'
  expect_match out '^CapEff:.0000000000000000$'
  expect_match out '^NoNewPrivs:.1$'
  expect_match out '^Seccomp:.2$'
  check_equal "$who: fds of its own" "$(grep -c '^[0-9]$' "$out_file")" 4
  expect_status 0 in_view 'ls -d /proc/[0-9]* | wc -l'
  check "$who: its own processes" test "$out" -le 4

  expect_status 0 "${as[@]}" "$EXEC" sh --backend "$backend" --policy "$ws.json" --no-network 'cat /proc/net/dev | grep -c :; (exec 3<>/dev/tcp/127.0.0.1/1) 2>/dev/null || true'
  check_equal "$who: only a loopback" "$out" 1
  expect_status 0 "${as[@]}" "$EXEC" sh --json --backend "$backend" --policy "$ws.json" 'head -c 100000 /dev/zero | tr "\0" a; echo e >&2; (setsid sleep 71 &)'
  expect_match out '"stdout_bytes": 100000, "stdout_truncated": true'
  expect_match out '"left_over_killed": [1-9]'
  expect_status 124 "${as[@]}" "$EXEC" sh --backend "$backend" --policy "$ws.json" --timeout 500ms 'setsid sh -c "trap : TERM; sleep 72; sleep 72" & (setsid sleep 73 &); kill -STOP $$; sleep 74'
  check_equal "$who: no process is left" "$(pgrep -cfx 'sleep 7[1-4]' || true)" 0
  expect_status 3 "${as[@]}" "$EXEC" run --tty --backend "$backend" --policy "$ws.json" -- sh -c 'test -t 0 && tty && exit 3'
  expect_match out '^/dev/pts/0'
  expect_status 127 "${as[@]}" "$EXEC" run --backend "$backend" --policy "$ws.json" -- no-such-program
  expect_status 125 "${as[@]}" "$EXEC" run --backend "$backend" --policy "$ws.json" --cwd way/none -- true
  expect_no_leaks "$who: nothing is left" "$before"
}

expect_status 0 "$EXEC" run --workspace "$tmp/ro" -- true
before=$(list_leaks)
state=$STELLA_STATE_DIR
for backend in fsgate bwrap; do
  as=()
  export STELLA_STATE_DIR=$state
  make_workspace 0
  same_promises "root, $backend"
  as=(as-user --home "$home" "$USER_ID" --)
  make_workspace $USER_ID
  export STELLA_STATE_DIR=$home/state
  expect_status 0 in_view true
  before_root=$before
  before=$(list_leaks)
  same_promises "user, $backend"
  before=$before_root
done
export STELLA_STATE_DIR=$state
as=()

echo '--- what is known by bwrap, and what not'
make_workspace 0
expect_status 0 "$EXEC" sh --json --backend bwrap --policy "$ws.json" 'touch n; echo x >/opt/ro/f; rm n'
expect_match out '"denials": null, .*"writable": \["/workspace", "/tmp"\], "changes": null'
expect_status 0 "$EXEC" run --json --backend fsgate --workspace "$ws" -- touch n
expect_match out '"denials": \[\], .*"changes": \[\{"path": "/workspace/n", "change": "created"\}\]'
rm "$ws/n"

echo '--- what bwrap cannot promise is refused, and named'
tree=$(snapshot "$ws")
refused() { # KEY MORE-OF-FILESYSTEM MORE-OF-POLICY
  echo '{"version": 1, "filesystem": {"working_dir": "/workspace", "workspace_root": "'"$ws"'"'"${2:-}"'}'"${3:-}"'}' >"$tmp/policy"
  expect_status 125 "$EXEC" run --json --backend bwrap --policy "$tmp/policy" -- touch ran
  expect_match out "\"code\": \"policy-incompatible\", .*\"key\": \"$1\""
  expect_match err '^stella-exec: backend "bwrap" cannot '
  expect_one_line err
  expect_unchanged "$1: nothing is run" "$ws" "$tree"
}
refused filesystem.symlinks ', "symlinks": "deny"'
refused filesystem.hide ', "hide": ["**/.env"]'
refused filesystem.protect ', "protect": ["**/.git/**"]'
refused filesystem.ownership ', "ownership": "host"'
refused network.timeout_ms '' ', "network": {"timeout_ms": 1000}'
mount='"host_path": "'"$ws"'", "view_path": "/workspace"'
refused 'filesystem.mounts\[0\].access' ', "mounts": [{'"$mount"', "access": "cow"}]'
refused 'filesystem.mounts\[0\].quota_bytes' ', "mounts": [{'"$mount"', "access": "rw", "quota_bytes": 1000000}]'
refused 'filesystem.mounts\[0\].quota_files' ', "mounts": [{'"$mount"', "access": "rw", "quota_files": 100}]'
refused 'filesystem.mounts\[1\].view_path' ', "mounts": [{'"$mount"', "access": "rw"}, {"host_path": "'"$tmp/ro"'", "view_path": "/workspace/none/at", "access": "ro"}]'
for mode in auto strict exclusive; do
  expect_status 0 "$EXEC" run --backend bwrap --workspace "$ws" --cache $mode -- true
done
# fsgate shows a place that is not there, and makes none.
expect_status 0 "$EXEC" run --backend fsgate --workspace "$ws" --ro "$tmp/ro:/workspace/none/at" -- cat none/at/t
expect_unchanged 'nothing was made on the host' "$ws" "$tree"

echo '--- mounts of the host and the state directory do not show'
mkdir "$ws/mounted" "$ws/state"
mount -t tmpfs none "$ws/mounted"
echo secret >"$ws/mounted/s"
expect_status 0 "$EXEC" sh --backend bwrap --workspace "$ws" 'ls -A mounted; ls -ld mounted >/dev/null && touch f'
check_equal 'an empty directory' "$out" ''
expect_status 1 "$EXEC" sh --backend bwrap --workspace "$ws" 'touch mounted/new'
check 'the mount is as it was' test "$(ls -A "$ws/mounted")" = s
STELLA_STATE_DIR=$ws/state expect_status 0 "$EXEC" sh --backend bwrap --workspace "$ws" 'ls -A state; touch f; touch /tmp/t && ls /tmp'
check_equal 'nor the state directory' "$out" t
umount "$ws/mounted"
mkdir "$tmp/alias"
mount --bind "$ws" "$tmp/alias"
STELLA_STATE_DIR=$ws/state expect_status 0 "$EXEC" sh --backend bwrap --workspace "$tmp/alias" 'ls -A state'
check_equal 'nor by another path of the host' "$out" ''
ro_tree=$(snapshot "$ws/way/ro")
expect_status 0 "$EXEC" sh --backend bwrap --workspace "$tmp/alias" --ro "$ws/way/ro:/opt/ro" 'echo x >way/ro/f; mv way/ro way/ro2; mv way way2; true'
expect_unchanged 'what is read-only by one path is so by the other' "$ws/way/ro" "$ro_tree"
umount "$tmp/alias"
rm -rf "$ws/mounted" "$ws/state"

echo '--- the end of each party'
background "$EXEC" sh --backend bwrap --workspace "$ws" 'touch ready; exec sleep 75'
pid=$background_pid
wait_for 20 test -e "$ws/ready" || fail 'the command did not start'
kill -KILL "$pid"
check 'the end of the caller ends all' wait_for 10 eval '! pgrep -fx "sleep 75" >/dev/null && ! pgrep -x bwrap >/dev/null'
wait "$pid" || true
rm "$ws/ready"
background "$EXEC" sh --json --backend bwrap --workspace "$ws" 'touch ready; exec sleep 76' >"$tmp/result"
pid=$background_pid
wait_for 20 test -e "$ws/ready" || fail 'the command did not start'
pkill -KILL -P "$pid" -x bwrap
wait "$pid" || true
check 'the end of bwrap ends the command' wait_for 10 eval '! pgrep -fx "sleep 76" >/dev/null'
check 'and is told' grep -q '"code": "session-closed"' "$tmp/result"
rm "$ws/ready"
expect_status 0 "$EXEC" run --workspace "$ws" -- true
expect_no_leaks 'nothing is left' "$before"

echo '--- a workspace whose directories are moved about while sessions start'
make_workspace 0
ro_tree=$(snapshot "$ws/way/ro")
touch "$tmp/moving"
(cd "$ws" && while test -e "$tmp/moving"; do mv -T way aside && ln -s /etc way && rm way && mv -T aside way && sleep 0.1; done) &
mover=$!
test_pids+=("$mover")
started=0 failed=0
for _ in $(seq 60); do
  run "$EXEC" sh --json --backend bwrap --policy "$ws.json" 'for d in way aside; do echo x >>$d/ro/f; touch $d/ro/new; rm -f $d/ro/f; mv $d/ro $d/moved; done 2>/dev/null; cat /opt/ro/f'
  case $status in
  0) started=$((started + 1)) && check 'what is read-only is there' grep -q '"stdout": "kept' "$out_file" ;;
  125) failed=$((failed + 1)) && check 'or it does not start, for what is not what it was' grep -qE '"stage": "(policy|plan|mount-point|bind|bind-source|bwrap)"' "$out_file" ;;
  *) fail "status $status" "$(tail -n 3 "$out_file" "$err_file")" ;;
  esac
done
rm "$tmp/moving"
wait "$mover" || true
check "$started sessions started, $failed did not" test "$started" -gt 0
check_equal 'nothing read-only was written to' "$(find "$ws" -name f -path '*/ro/*' -exec cat {} +)" kept
[ -d "$ws/way" ] || mv -T "$ws/aside" "$ws/way"
expect_unchanged 'nor moved' "$ws/way/ro" "$ro_tree"

echo '--- limits of the session'
limited() { expect_status "$1" "$EXEC" sh --json --backend bwrap --workspace "$ws" --limit "$2" "$3"; }
limited 0 processes=20 'true'
if ! grep -q 'limits_unenforced": \[[^]]*processes' "$out_file"; then
  limited 2 processes=5 'for i in 1 2 3 4 5 6 7 8; do sleep 100 & done 2>/dev/null; true'
  expect_match out '"left_over_killed": 4, "limits_hit": \["processes"\]'
fi
expect_status 153 "$EXEC" sh --backend bwrap --workspace "$ws" --limit file_size_bytes=10 'exec seq 1000 >big'
rm -f "$ws/big"

echo '--- which one is taken'
cat >"$tmp/nofuse" <<'END'
mount -t tmpfs none /dev && cd /dev && mknod -m 666 null c 1 3 && mknod -m 666 zero c 1 5 && mknod -m 666 full c 1 7 &&
  mknod -m 666 random c 1 8 && mknod -m 666 urandom c 1 9 && mknod -m 666 tty c 5 0 && exec "$@"
END
nofuse() { unshare -m sh "$tmp/nofuse" "$@"; }
cat >"$tmp/nobwrap" <<'END'
for program in /usr/bin/bwrap /bin/bwrap /usr/local/bin/bwrap; do [ ! -e "$program" ] || mount --bind /dev/null "$program"; done
exec "$@"
END
expect_status 0 "$EXEC" run --workspace "$ws" -- cat f
check_equal 'fsgate, where it is: nothing is said' "$err" ''
expect_status 0 nofuse "$EXEC" run --workspace "$ws" -- cat f
expect_line out mine
expect_one_line err
expect_match err '^stella-exec: backend bwrap is used: denials and changes are not known \(fsgate: cannot open /dev/fuse: No such file or directory\)$'
expect_status 0 nofuse "$EXEC" run --quiet --workspace "$ws" -- cat f
check_equal '--quiet: nothing is said' "$err" ''
expect_status 0 nofuse "$EXEC" run --quiet --log-format json --workspace "$ws" -- cat f
expect_match err '"event":"sandbox.backend_skipped","backend":"fsgate","reason":"cannot open /dev/fuse'
expect_match err '"event":"sandbox.session_created",.*"backend":"bwrap"'
expect_status 0 nofuse "$EXEC" doctor
expect_match out '^missing  FUSE device'
expect_match out '^ok       bwrap: /usr/bin/bwrap, bubblewrap [0-9.]+$'
expect_match out '^run works by bwrap, denials and changes not being known: cannot open /dev/fuse: No such file or directory$'
expect_status 1 nofuse sh "$tmp/nobwrap" "$EXEC" doctor --json
expect_match out '"run_works": false, "reason": "cannot open /dev/fuse: No such file or directory"'
expect_match out '"name": "bwrap", "state": "degraded", .*"remedy": "install bubblewrap"'
expect_status 125 nofuse "$EXEC" run --workspace "$ws" --backend fsgate -- touch ran
expect_match err '^stella-exec: cannot open /dev/fuse'
expect_status 125 nofuse "$EXEC" run --workspace "$ws" --symlinks deny -- touch ran
expect_match err '^stella-exec: cannot open /dev/fuse'
expect_status 125 nofuse sh "$tmp/nobwrap" "$EXEC" run --log-format json --workspace "$ws" -- touch ran
expect_match err '"event":"sandbox.unsupported_backend","attempted_backends":"fsgate, bwrap","reason":"cannot open /dev/fuse'
expect_match err '^stella-exec: cannot open /dev/fuse'
expect_status 125 unshare -m sh "$tmp/nobwrap" "$EXEC" run --workspace "$ws" --backend bwrap -- touch ran
expect_match err '^stella-exec: .*bwrap'
expect_status 125 "$EXEC" run --workspace "$ws" --backend other -- touch ran
expect_match err 'expected fsgate, bwrap, none or nop'
check_not 'nothing was run in all of these' test -e "$ws/ran"
expect_no_leaks 'nothing is left' "$before"

# What none promises: no boundary, but order.
on_host() { # COMMAND
  FROM_CALLER=1 MY_TOKEN=secret "${as[@]}" "$EXEC" sh --backend none --policy "$ws.json" "$1"
}
by_none() { # WHO
  echo "--- none, $1"
  local who=$1
  expect_status 0 on_host 'pwd; echo "$HOME:$FROM_POLICY:$FROM_CALLER$MY_TOKEN:$TMPDIR"; id -u; cat f; touch made "$TMPDIR/t"; cat /proc/$$/status | grep -c "Seccomp:.0"'
  expect_line out "$ws"
  expect_match out "^$ws:yes::$STELLA_STATE_DIR/sessions/sandbox-[0-9a-f]+/tmp$"
  expect_line out "$2"
  expect_line out mine
  check "$who: it runs on the host" test -e "$ws/made"
  rm "$ws/made"
  expect_status 0 "${as[@]}" "$EXEC" run --backend none --policy "$ws.json" --cwd "$ws/way" -- pwd
  check_equal "$who: directories are the host's" "$out" "$ws/way"
  expect_status 125 "${as[@]}" "$EXEC" run --backend none --policy "$ws.json" --cwd "$home" -- pwd
  expect_match err 'outside every mount'
  expect_status 3 "${as[@]}" "$EXEC" sh --json --backend none --policy "$ws.json" '(setsid sleep 81 &); (setsid sh -c "setsid sleep 82 & setsid sleep 83; true" &)
    sh -c "sleep 84 & wait" & while [ "$(pgrep -cfx "sleep 8[1-4]")" != 4 ]; do sleep 0.05; done; exit 3'
  expect_match out '"denials": null, .*"changes": null, .*"left_over_killed": 6, '
  expect_match out '"limits_unenforced": \["network.abstract_sockets", "filesystem.sockets"\]'
  check_equal "$who: what was left is gone" "$(pgrep -cfx 'sleep 8[1-4]' || true)" 0
  cat >"$tmp/chain.py" <<'END'
import os
os.setsid() if os.fork() == 0 else os._exit(0)
while True:
    if os.fork():
        os._exit(0)
END
  expect_status 0 timeout 60 "${as[@]}" "$EXEC" sh --backend none --policy "$ws.json" "(python3 $tmp/chain.py &); sleep 0.2"
  check_equal "$who: nor does a chain of processes go on" "$(pgrep -cf chain.py || true)" 0
  expect_status 0 "${as[@]}" "$EXEC" run --backend none --workspace "$ws" --timeout 60s -- sh -c 'exec 1>&- 2>&-; exec sleep 0.1'
  expect_status 124 "${as[@]}" "$EXEC" sh --backend none --policy "$ws.json" --timeout 500ms 'setsid sh -c "trap : TERM; sleep 85; sleep 85" & (setsid sleep 86 &); kill -STOP $$; sleep 87'
  check_equal "$who: nor after a timeout" "$(pgrep -cfx 'sleep 8[5-7]' || true)" 0
  expect_status 3 "${as[@]}" "$EXEC" run --tty --backend none --policy "$ws.json" -- sh -c 'test -t 0 && tty && exit 3'
  expect_match out '^/dev/pts/[0-9]+'
  expect_status 153 "${as[@]}" "$EXEC" sh --backend none --workspace "$ws" --limit file_size_bytes=10 'exec seq 1000 >big'
  rm -f "$ws/big"
  expect_status 0 "${as[@]}" "$EXEC" sh --json --backend none --policy "$ws.json" 'head -c 100000 /dev/zero'
  expect_match out '"stdout_bytes": 100000, "stdout_truncated": true'
  expect_status 127 "${as[@]}" "$EXEC" run --backend none --policy "$ws.json" -- no-such-program
  background "${as[@]}" "$EXEC" sh --backend none --policy "$ws.json" '(setsid sleep 88 &); touch ready; exec sleep 89'
  local pid=$background_pid
  wait_for 20 test -e "$ws/ready" || fail 'the command did not start'
  check "$who: they run" pgrep -fx 'sleep 8[89]'
  pkill -KILL -P "$pid" -x stella-exec || kill -KILL "$pid"
  kill -KILL "$pid" 2>/dev/null || true
  check "$who: the end of the caller ends all" wait_for 10 eval '! pgrep -fx "sleep 8[89]" >/dev/null && ! pgrep -x stella-sandbox- >/dev/null'
  wait "$pid" || true
  rm "$ws/ready"
}
by_none root 0
# The workspace is below the host's /tmp here, and named by nothing but its own path.
printf '{"version": 1, "filesystem": {"working_dir": "%s"}}' "$ws" >"$tmp/own-path.json"
expect_status 0 "$EXEC" run --backend none --policy "$tmp/own-path.json" -- pwd
check_equal 'a directory of the host is where it is' "$out" "$ws"
for key in 'network.mode:, "network": {"mode": "disabled"}' 'process.user:, "process": {"user": 4321}'; do
  echo '{"version": 1, "filesystem": {"working_dir": "/workspace", "workspace_root": "'"$ws"'"}'"${key#*:}"'}' >"$tmp/policy"
  expect_status 125 "$EXEC" run --json --backend none --policy "$tmp/policy" -- touch ran
  expect_match out "\"code\": \"policy-incompatible\", .*\"key\": \"${key%%:*}\""
done
expect_status 125 "$EXEC" run --backend none --workspace "$ws" --runtime none -- touch ran
expect_status 125 "$EXEC" run --backend none --workspace "$ws" --symlinks deny -- touch ran
check_not 'nothing was run in all of these' test -e "$ws/ran"
as=(as-user --home "$home" "$USER_ID" --)
make_workspace $USER_ID
export STELLA_STATE_DIR=$home/state
by_none user $USER_ID
# The bystanders of a command's end.
background "${as[@]}" sleep 90
expect_status 0 on_host '(setsid sleep 91 &)'
check 'another process of the same user lives' pgrep -fx 'sleep 90'
export STELLA_STATE_DIR=$state
as=()
expect_status 0 "$EXEC" run --workspace "$ws" -- true
expect_no_leaks 'nothing is left' "$before"

echo '--- nothing runs by nop'
expect_status 0 "$EXEC" run --backend nop --workspace "$ws" -- touch ran
check_not 'nothing is run' test -e "$ws/ran"
expect_status 0 "$EXEC" run --json --backend nop --workspace "$ws" -- false
expect_match out '"ended": "exited", "exit_code": 0, .*"stdout": "", .*"stderr": "", '
finish
