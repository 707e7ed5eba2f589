#!/usr/bin/env bash
# What is told of a sandbox while it runs: JSON lines when asked for, nothing otherwise, and never a secret.
#
# shellcheck disable=SC1091,SC2016,SC2154 # what sh-lib.sh sets; texts that an inner shell expands
. "${STELLA_TEST_LIB:?run this test through meson test}/sh-lib.sh"
preflight root fuse || exit $?

mkdir "$tmp/ws" "$tmp/ro"
cd "$tmp/ws" || exit 1

# records FILE: checks that each line is one object of strings with time, level and event, and prints one line each.
cat >"$tmp/records.py" <<'END'
import datetime, json, sys
for line in open(sys.argv[1]):
    record = json.loads(line)
    assert all(isinstance(value, str) for value in record.values()), record
    datetime.datetime.strptime(record.pop("time").split(".")[0].rstrip("Z"), "%Y-%m-%dT%H:%M:%S")
    print(record.pop("event"), record.pop("level"), " ".join(f"{k}={v}" for k, v in sorted(record.items())))
END
records() { # STATUS COMMAND...: its records in $out_file
  expect_status "$@"
  cp "$err_file" "$tmp/log"
  expect_status 0 python3 "$tmp/records.py" "$tmp/log"
}

echo '--- a session'
records 3 "$EXEC" run --log-format json --no-network -- sh -c 'exit 3'
expect_match out '^sandbox.session_created info backend=fsgate network_mode=disabled session_id=sandbox-[0-9a-f]{16} working_dir=/workspace$'
expect_match out '^sandbox.session_closed info backend=fsgate reason=closed session_id=sandbox-[0-9a-f]{16}$'
check_equal 'that is all' "$(wc -l <"$out_file")" 2
check_equal 'of one session' "$(grep -o 'sandbox-[0-9a-f]*' "$out_file" | sort -u | wc -l)" 1

echo '--- what is refused'
flood='for i in $(seq 40) $(seq 40); do touch /opt/stella/$i 2>/dev/null; done; true'
records 0 "$EXEC" sh --log-format json --ro "$tmp/ro:/opt/stella" 'touch /opt/stella/one 2>/dev/null || true'
expect_match out '^sandbox.policy_denied info count=1 operation=[a-z]+ path=/opt/stella/one reason=read-only-mount session_id=sandbox-'
records 0 "$EXEC" sh --log-format json --ro "$tmp/ro:/opt/stella" "$flood"
check_equal 'a flood is 16 records and a number' "$(grep -c '^sandbox.policy_denied' "$out_file")" 17
expect_match out '^sandbox.policy_denied info omitted=[1-9][0-9]* session_id=sandbox-'
check 'the first are kept' grep -q 'path=/opt/stella/1 ' "$out_file"
check 'and the log is small' test "$(stat -c %s "$tmp/log")" -lt 10000

echo '--- what is not supported'
echo '{"version": 1, "filesystem": {"working_dir": "/workspace", "workspace_root": "'"$PWD"'"}, "network": {"timeout_ms": 1000}}' >"$tmp/incompatible"
records 125 sh -c '"$1" run --log-format json --backend fsgate --policy "$2" -- true 2>&1 >/dev/null | grep -v "^stella-exec: " >&2; exit 125' sh "$EXEC" "$tmp/incompatible"
expect_match out '^sandbox.unsupported_backend error attempted_backends=fsgate network_mode=allow_all reason=backend "fsgate" cannot end connections: network.timeout_ms working_dir=/workspace$'
run unshare -m sh -c 'mount -t tmpfs none /dev && cd /dev && mknod null c 1 3 && mknod zero c 1 5 && mknod full c 1 7 &&
  mknod random c 1 8 && mknod urandom c 1 9 && mknod tty c 5 0 && exec "$@"' sh "$EXEC" run --log-format json --backend fsgate -- true
check_equal 'without a device' "$status" 125
grep '^{' "$err_file" >"$tmp/log" || true
expect_status 0 python3 "$tmp/records.py" "$tmp/log"
expect_match out '^sandbox.unsupported_backend error attempted_backends=fsgate .*reason=cannot open /dev/fuse'
check_equal 'no session was created, so none is closed' "$(wc -l <"$out_file")" 1

echo '--- without the option'
expect_status 0 "$EXEC" run -- true
check_equal 'nothing is told' "$err" ''
expect_status 125 "$EXEC" run --backend nope -- true
expect_one_line err
G_MESSAGES_DEBUG=stella-sandbox expect_status 0 "$EXEC" run --json -- true
expect_one_line out
expect_match err 'sandbox.session_created session_id=sandbox-'
G_MESSAGES_DEBUG=all expect_status 0 "$EXEC" run -- echo out
check_equal 'nor on stdout with it' "$out" out
G_MESSAGES_DEBUG=other expect_status 0 "$EXEC" run -- true
check_equal 'nor for another domain' "$err" ''
expect_status 125 "$EXEC" run --log-format xml -- true
expect_one_line err
expect_match err "^stella-exec: --log-format: expected text or json, got 'xml'"

echo '--- a server'
printf '{"jsonrpc": "2.0", "id": 1, "method": "session.create", "params": {"policy": {"version": 1, "filesystem":
 {"working_dir": "/workspace", "mounts": [{"host_path": "%s", "view_path": "/workspace", "access": "rw"}]}}}}' "$PWD" | tr -d '\n' >"$tmp/request"
echo >>"$tmp/request"
records 0 "$EXEC" serve --log-format json <"$tmp/request"
expect_match out '^sandbox.session_created info backend=fsgate'
expect_match out '^sandbox.session_closed info backend=fsgate'
# The answers are all that is on stdout, also when GLib is asked for more.
G_MESSAGES_DEBUG=all expect_status 0 "$EXEC" serve <"$tmp/request"
expect_match out '"session_id"'
expect_one_line out
expect_match err 'sandbox.session_created session_id=sandbox-'
expect_status 0 "$EXEC" serve <"$tmp/request"
check_equal 'nothing is told without the option' "$err" ''
expect_status 125 "$EXEC" serve --log-format
expect_one_line err
expect_status 125 "$EXEC" serve --log-format xml
expect_one_line err

echo '--- a session whose gateway dies'
background sh -c 'exec "$1" run --log-format json -- sh -c "touch ready; sleep 5" 2>"$2"' sh "$EXEC" "$tmp/log"
pid=$background_pid
wait_for 20 test -e ready || fail 'the command did not start'
gateway=$(pgrep -P "$pid" -x stella-fsgate || true)
check 'there is one gateway' test -n "$gateway"
kill -KILL "$gateway"
wait "$pid" || true
grep '^{' "$tmp/log" >"$tmp/lines"
expect_status 0 python3 "$tmp/records.py" "$tmp/lines"
expect_match out '^sandbox.session_closed info backend=fsgate reason=(ended|failed) session_id='
rm -f ready

echo '--- secrets'
secret=hunter2-7f3a9c
printf '{"version": 1, "filesystem": {"working_dir": "/workspace", "mounts": [{"host_path": "%s", "view_path": "/workspace", "access": "rw"}]},
  "env": {"POLICY_TOKEN": "%s"}}\n' "$PWD" "$secret" >"$tmp/policy"
echo "FILE_TOKEN=$secret" >"$tmp/env"
# While it runs its processes are looked at; the command has the secret, which shows that there was something to leak.
background sh -c 'CALLER_TOKEN=$3 G_MESSAGES_DEBUG=all exec "$1" run --log-format json --result "$2/result" --policy "$2/policy" \
  --setenv CALLER_TOKEN --env-file "$2/env" -- sh -c "echo \$CALLER_TOKEN-\$FILE_TOKEN-\$POLICY_TOKEN >seen; touch ready; while test -e ready; do sleep 0.1; done; no-such-program" \
  >/dev/null 2>"$2/log"' sh "$EXEC" "$tmp" "$secret"
pid=$background_pid
wait_for 20 test -e ready || fail 'the command did not start'
check_equal 'the command has them' "$(cat seen)" "$secret-$secret-$secret"
for process in /proc/[0-9]*; do
  name=$(cat "$process/comm" 2>/dev/null) || continue
  case $name in
  stella-*) check_not "not in the arguments of $name" grep -aq "$secret" "$process/cmdline" ;;
  esac
  case $name in
  stella-fsgate | stella-sandbox-) check_not "nor in the environment of $name" grep -aq "$secret" "$process/environ" ;;
  esac
done
rm ready
wait "$pid" || true
check 'there is a log' grep -q session_closed "$tmp/log"
check_not 'not in the log' grep -q "$secret" "$tmp/log"
check_not 'nor in the result' grep -q "$secret" "$tmp/result"
expect_status 0 "$EXEC" run -- sh -c 'env; cat /proc/*/environ 2>/dev/null | tr "\0" "\n"'
check_not 'nor for the next command' grep -aq "$secret" "$out_file"
CALLER_TOKEN=$secret run "$EXEC" run --policy "$tmp/policy" --setenv CALLER_TOKEN --log-format json --cwd /none -- true
check_equal 'a start that fails' "$status" 125
check_not 'nor in an error' grep -q "$secret" "$err_file"
finish
