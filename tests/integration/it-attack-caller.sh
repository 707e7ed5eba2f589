#!/usr/bin/env bash
# What the caller has and a command must not get: open files, directories, the environment, a terminal, the files of
# our own programs; what two sandboxes have and must not share.
#
# shellcheck disable=SC1091,SC2016,SC2154 # what sh-lib.sh sets; texts that the inner shell expands
. "${STELLA_TEST_LIB:?run this test through meson test}/sh-lib.sh"
preflight root fuse userns seccomp || exit $?

ws=$tmp/ws
mkdir "$ws" "$tmp/attack"
for name in privilege share terminal; do
  cp "$STELLA_TEST_BUILD/tests/attack/attack-$name" "$tmp/attack/"
done
cp "$STELLA_TEST_BUILD/tests/attack/planted.so" "$tmp/attack/"
mount -t tmpfs -o mode=755 none /srv
cd "$ws" || exit 1
options=(--workspace "$ws" --ro "$tmp/attack:/opt/attack")
inside() { run "$EXEC" run "${options[@]}" "$@"; }
inside -- true
before=$(list_leaks)
ours=("$EXEC" "$FSGATE" "$STELLA_TEST_BUILD/executor/stella-sandbox-init")
sums=$(sha256sum "${ours[@]}")

# Two hundred files of the caller's, none of them close-on-exec, at low numbers and at the highest there is.
echo secret >"$tmp/secret"
with_files() { # COMMAND...: in the place of this shell, with all of them open
  local fd highest
  ulimit -n "$(ulimit -Hn)"
  highest=$(($(ulimit -n) - 1))
  [ "$highest" -lt 60000 ] || highest=60000
  for ((fd = 3; fd < 204; fd++)); do eval "exec $fd<>\"\$tmp/secret\""; done
  eval "exec $highest</"
  exec "$@"
}
in_shell() { ("$@"); }
run in_shell with_files sh -c 'ls /proc/self/fd | wc -l'
check "outside there are $out" test "$out" -gt 200
run in_shell with_files "$EXEC" run "${options[@]}" -- sh -c 'ls /proc/$$/fd | tr "\n" " "; exec /opt/attack/attack-privilege'
expect_match out '^0 1 2 three fds, which are pipes: 0 0$'
# None of ours has them either.
with_files "$EXEC" run "${options[@]}" -- sh -c 'touch started; sleep 1000' &
pid=$!
test_pids+=("$pid")
wait_for 10 test -e started
holders=0
for program in stella-fsgate stella-sandbox-; do
  for other in $(pgrep "$program"); do
    holders=$((holders + 1))
    check_equal "$program has none of them" "$(readlink "/proc/$other/fd/"* | grep -c '/secret$' || true)" 0
  done
done
check 'all of ours were looked at' test "$holders" -ge 3
kill "$pid"
wait "$pid" || true
rm started

# A priority over others, and where root may have one a protection from the OOM killer.
favoured() {
  { echo -500 >/proc/self/oom_score_adj; } 2>/dev/null || true
  exec nice -n -5 "$@"
}
run in_shell favoured nice
check_equal 'outside it is there' "$out" -5
run in_shell favoured "$EXEC" run "${options[@]}" -- sh -c 'nice; cat /proc/self/oom_score_adj'
check_equal 'inside it is not' "$out" "$(printf '0\n0')"

# Directories that are none of the view's.
mkdir sub "$tmp/moved"
ln -s /proc/self/cwd to-cwd
ln -s / to-root
ln -s "$tmp/moved" to-outside
exec 7</
for dir in /proc/self/fd/7 /proc/1/root /proc/1/cwd to-cwd to-cwd/directory /srv to-outside "$tmp/moved"; do
  inside --cwd "$dir" -- sh -c 'pwd; ls'
  check_equal "refused: --cwd $dir" "$status" 125
  check_equal 'nothing ran' "$out" ''
done
# What is the view's by another name is the view's.
for dir in / ../.. /proc/self/cwd to-root to-cwd/..; do
  inside --cwd "$dir" -- sh -c 'readlink /proc/self/cwd; ls -d "$(readlink /proc/self/cwd)/srv" /srv'
  check "in the view: --cwd $dir" grep -Exq '/|/workspace' "$out_file"
  expect_no_match out srv
done
exec 7<&-
inside --cwd sub -- pwd
expect_line out /workspace/sub
# Exchanged all the time while commands start in it: what they find is the view's, or they do not start.
(while :; do
  mv -T sub "$tmp/moved/sub" && ln -s "$tmp" sub && rm sub && mv -T "$tmp/moved/sub" sub
done) 2>/dev/null &
swapper=$!
test_pids+=("$swapper")
ran=0
for ((i = 0; i < 15; i++)); do
  inside --cwd sub -- sh -c 'readlink /proc/self/cwd; ls; ls .. | head -3'
  case $status in
  0 | 2) # ls finds nothing in what is gone
    ran=$((ran + 1))
    check "in the view: $(head -1 "$out_file")" grep -q '^/workspace\|^/$' "$out_file"
    expect_no_match out '^(secret|moved|attack)$'
    ;;
  125) ;;
  *) fail "a directory that comes and goes: status $status" "$err" ;;
  esac
done
check "$ran of 15 ran" test "$ran" -gt 0
kill "$swapper"
wait "$swapper" 2>/dev/null || true
rm -rf sub to-cwd to-root to-outside

# Our own programs: run by a command, as an interpreter, written to by each way to them.
printf '#!/proc/self/exe\n' >self
chmod 755 self
run "$EXEC" run "${options[@]}" -- ./self
check "a script whose interpreter is our own program: $status" test "$status" = 126
inside -- /proc/self/exe
check "our own program as a program: $status" test "$status" = 126
cat >way <<'END'
for f in /proc/self/exe /proc/1/exe /proc/2/exe; do
  (exec 9<>$f) 2>/dev/null && echo opened $f
  (: >>$f) 2>/dev/null && echo appended $f
done
readlink /proc/1/exe && echo read
cp /bin/true mine && (exec 9<>mine) && echo twin
END
inside -- sh /workspace/way
check_equal 'none of them can be opened' "$out" twin
check_equal 'our programs are as they were' "$(sha256sum "${ours[@]}")" "$sums"
rm -f self way mine

# The environment of a caller that has everything set that ever led somewhere.
leaky=(LD_PRELOAD= LD_LIBRARY_PATH=/leak LD_AUDIT= GLIBC_TUNABLES=glibc.malloc.check=1 BASH_ENV=/leak ENV=/leak
  'BASH_FUNC_x%%=() { echo leak; }' PS4=leak IFS=leak NODE_OPTIONS=--leak PYTHONPATH=/leak
  PYTHONSTARTUP=/leak PERL5OPT=-leak RUBYOPT=-leak GIT_SSH_COMMAND=leak GIT_DIR=/leak SSH_AUTH_SOCK=/leak
  SSH_ASKPASS=/leak GIT_ASKPASS=/leak DOCKER_HOST=leak DBUS_SESSION_BUS_ADDRESS=leak AWS_SECRET_ACCESS_KEY=leak
  AWS_PROFILE=leak GITHUB_TOKEN=leak OPENAI_API_KEY=leak KUBECONFIG=/leak STELLA_VAULT_KEY=leak DB_PASSWORD=leak
  MY_SECRET=leak XDG_RUNTIME_DIR=/leak LEAK=leak)
allowed='COLORTERM HOME LANG LC_ALL LC_CTYPE LOGNAME PATH PWD SHELL TERM TMPDIR TZ USER XDG_CACHE_HOME XDG_CONFIG_HOME XDG_DATA_HOME XDG_STATE_HOME STELLA_USER_DIR HTTPS_PROXY'
run env "${leaky[@]}" TERM=vt100 TZ=UTC HTTPS_PROXY=http://proxy "$EXEC" run "${options[@]}" -- env
check_equal 'every variable is one of the allowed' \
  "$(sed 's/=.*//' "$out_file" | grep -vxF "$(tr ' ' '\n' <<<"$allowed")" || true)" ''
expect_no_match out 'leak'
expect_line out 'TERM=vt100'
expect_line out 'HTTPS_PROXY=http://proxy'
# With the caller's environment: not what is on the list.
cat >"$tmp/inherit.json" <<END
{"version": 1, "inherit_env": true, "filesystem": {"working_dir": "/workspace",
 "mounts": [{"host_path": "$ws", "view_path": "/workspace", "access": "rw"}]}}
END
run env "${leaky[@]}" HARMLESS=1 "$EXEC" run --policy "$tmp/inherit.json" -- env
expect_line out 'HARMLESS=1'
for name in LD_ GLIBC_ BASH_ENV ENV= BASH_FUNC PYTHONSTARTUP NODE_OPTIONS PERL5OPT RUBYOPT GIT_ SSH_AUTH_SOCK AWS_ GITHUB_TOKEN \
  OPENAI_API_KEY STELLA_VAULT_KEY DB_PASSWORD MY_SECRET; do
  expect_no_match out "^$name"
done
# A secret of one call is in no command line, in none of our processes, and gone with the next call.
echo 'CALL_TOKEN=s3cr3t-of-one-call' >"$tmp/env"
env "${leaky[@]}" "$EXEC" run "${options[@]}" --env-file "$tmp/env" -- sh -c 'echo "$CALL_TOKEN" >got; cat /proc/1/environ >first; sleep 1000' &
pid=$!
test_pids+=("$pid")
wait_for 10 test -s got
check_equal 'the command has it' "$(cat got)" s3cr3t-of-one-call
check_equal 'and nothing of PID 1' "$(cat first)" ''
# The options of sanitizers, which tell of leaks, are passed on.
holds_secrets() { tr '\0' '\n' <"$1" | grep -av '^[A-Z]*SAN_OPTIONS=' | grep -aqE 'leak|s3cr3t'; }
for other in /proc/[0-9]*; do
  check_not "no command line has it: ${other#/proc/}" grep -aq s3cr3t "$other/cmdline"
  case $(cat "$other/comm" 2>/dev/null) in
  stella-sandbox-* | stella-fsgate) check_not "nor ours what the caller has: ${other#/proc/}" holds_secrets "$other/environ" ;;
  esac
done
kill "$pid"
wait "$pid" || true
inside -- env
expect_no_match out s3cr3t
rm -f got first

# Libraries, names and locales that an agent has planted: what loads them is the command, when it is harmless by then.
mkdir "$tmp/etc"
echo /opt/attack/planted.so >"$tmp/etc/ld.so.preload"
printf 'passwd: planted\ngroup: planted\n' >"$tmp/etc/nsswitch.conf"
for variable in LD_PRELOAD LD_AUDIT; do
  inside --setenv "$variable=/opt/attack/planted.so" --setenv LD_LIBRARY_PATH=/opt/attack --setenv LOCPATH=/opt/attack -- id -u
  check_equal "with $variable" "$status" 0
done
cp "$tmp/etc/ld.so.preload" "$tmp/etc/nsswitch.conf" .
check 'the planted library has been loaded' test -s planted-notes
check_equal 'with a filter every time' "$(grep -c '^Seccomp:.2' planted-notes)" "$(grep -c '^Pid:' planted-notes)"
check_equal 'and without capabilities' "$(grep -c '^CapEff:.0000000000000000' planted-notes)" "$(grep -c '^Pid:' planted-notes)"
# A sanitizer's runtime needs libraries, and init is linked with them then.
sanitized "$STELLA_TEST_BUILD/executor/stella-sandbox-init" ||
  check_not 'our init loads nothing' sh -c 'readelf -d "$1" | grep -q NEEDED' sh "$STELLA_TEST_BUILD/executor/stella-sandbox-init"
rm -f planted-notes ld.so.preload nsswitch.conf

# Links where mount points would be: nothing is made or mounted beyond them.
mkdir /srv/host "$tmp/nested"
echo host >/srv/host/file
for name in proc dev tmp workspace opt run sys usr etc; do ln -s /srv/host "$name"; done
tree=$(snapshot /srv/host)
inside --ro "$tmp/nested:/workspace/opt" --rw "$tmp/nested:/workspace/tmp" -- sh -c 'ls -A /workspace/opt /workspace/tmp; echo x >/workspace/tmp/x; mount | grep -c /srv/host'
expect_unchanged 'what links lead to is as it was' /srv/host "$tree"
check_equal 'the mount is what is there' "$(cat "$tmp/nested/x")" x
rm -f proc dev tmp workspace opt run sys usr etc

# A terminal of the caller's: no command gets it, and nothing is typed into it.
cat >"$tmp/terminal.py" <<'END'
import os, pty, select, sys, termios
pid, master = pty.fork()
if pid == 0:
    os.execv(sys.argv[1], sys.argv[1:])
out = b""
while True:
    try:
        got = os.read(master, 4096)
    except OSError:
        break
    if not got:
        break
    out += got
sys.stdout.write(out.decode().replace("\r", ""))
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
END
expect_status 0 timeout 60 python3 "$tmp/terminal.py" "$EXEC" run "${options[@]}" -- /opt/attack/attack-terminal
expect_match out '^TIOCSTI on fd 0: EPERM EPERM$'
expect_match out '^[1-9][0-9]+ tries, 0 wrong$'

# Two sandboxes at once, with a mount that both have.
mkdir "$tmp/shared"
chmod 777 "$tmp/shared"
mkfifo "$tmp/hold"
exec 8<>"$tmp/hold"
"$EXEC" run "${options[@]}" --rw "$tmp/shared:/shared" -- /opt/attack/attack-share put /shared/socket <"$tmp/hold" >"$tmp/put" 2>&1 &
pid=$!
test_pids+=("$pid")
wait_for 20 grep -qx ready "$tmp/put"
check_not 'the first finds all of its own' grep -q WRONG "$tmp/put"
inside --rw "$tmp/shared:/shared" -- /opt/attack/attack-share get /shared/socket
check_equal 'the second finds none of it' "$status" 0
expect_match out '^a connection to it: ECONNREFUSED ECONNREFUSED$'
expect_no_match out WRONG
echo >&8
status=0
wait "$pid" || status=$?
check_equal 'the first ends well' "$status" 0
exec 8<&-
inside -- sh -c 'ls -A /tmp /var/tmp /dev/shm /run'
expect_no_match out attack-file
check 'the names of POSIX queues are not the host' test ! -e /dev/mqueue/attack

# A start that fails is told from a program that ends.
printf '\177ELF\2\1\1\0\0\0\0\0\0\0\0\0\2\0\363\0\1\0\0\0' >foreign
truncate -s 4096 foreign
truncate -s 200M large
printf '#!/bin/sh' >"$tmp/shebang"
ln -s foreign link
mkfifo pipe
chmod 755 foreign large pipe
for try in 'foreign ENOEXEC' 'link ENOEXEC' 'large ENOEXEC' 'pipe EACCES' 'missing ENOENT' 'foreign/x ENOTDIR'; do
  inside --json -- "./${try% *}"
  expect_match out "\"ended\": \"start_failed\", \"exit_code\": null, .*\"stage\": \"exec\", \"errno\": \"${try#* }\""
done
inside --json -- ''
expect_match out '"ended": "start_failed", .*"errno": "ENOENT"'
for code in 126 127; do
  inside --json -- sh -c "exit $code"
  expect_match out "\"ended\": \"exited\", \"exit_code\": $code, \"signal\": null"
done
rm -f foreign large link pipe
expect_no_leaks 'nothing is left' "$before"
check_equal 'nor in the workspace' "$(ls -A "$ws")" ''
finish
