#!/usr/bin/env bash
# Results of every kind fit the published schema, and what they could be mistaken for does not.
#
# shellcheck disable=SC1091,SC2016,SC2154 # what sh-lib.sh sets; texts that the inner shell expands
. "${STELLA_TEST_LIB:?run this test through meson test}/sh-lib.sh"
preflight root fuse || exit $?

ws=$tmp/ws
keep=$tmp/keep
results=$tmp/results
mkdir "$ws" "$keep" "$results" "$tmp/lib"
echo x >"$tmp/lib/file"
chmod 1777 "$keep"
cd "$ws" || exit 1

# result STATUS NAME PATTERN ARGUMENT...: keeps the object, which has to match the pattern, and so be of the kind
# that is meant.
result() {
  local expected=$1 name=$2 pattern=$3
  shift 3
  expect_status "$expected" timeout 60 "$EXEC" "$@"
  expect_one_line out
  expect_match out "$pattern"
  cp "$out_file" "$results/$name"
}

result 0 text '"stdout": "out\\n"' run --json -- echo out
result 3 base64 '"stderr_encoding": "base64"' run --json -- sh -c 'printf "\377" >&2; exit 3'
result 0 lossy '"stdout_encoding": "utf-8-lossy"' run --json --lossy-text -- printf 'a\377'
result 0 control '\\u001b.*\\u0000' run --json -- printf '\033]52;c;eA==\a\0\302\233'
result 0 cut '"stdout_truncated": true' run --json --limit output_bytes=10 -- seq 100
result 0 tail 'bytes left out' run --json --limit output_bytes=10 --limit tail_bytes=5 -- seq 100
result 0 spill '"stdout_spill": "/tmp/' run --json --limit output_bytes=10 --limit spill=true --rw "$keep:/tmp" -- sh -c 'seq 100; seq 200 >&2'
result 0 base64-cut '"stdout_truncated": true' run --json --limit output_bytes=10 -- head -c 100 /usr/bin/env
result 137 signaled '"signal": "SIGKILL"' run --json -- sh -c 'kill -KILL $$'
result 168 realtime '"signal": "SIGRTMIN\+6"' run --json -- bash -c 'kill -40 $$'
result 124 timed-out '"ended": "timed_out"' run --json --timeout 300ms -- sleep 100
result 0 left-over '"left_over_killed": [1-9]' run --json -- sh -c '(sleep 100 &); true'
result 153 file-size '"limits_hit": \["file_size_bytes"\]' run --json --limit file_size_bytes=10 -- sh -c 'exec seq 1000 >f'
result 127 not-found '"code": "program-not-found"' run --json -- no-such-program
result 126 not-executable '"code": "program-not-executable"' run --json -- /workspace
result 125 cwd '"code": "cwd-invalid"' run --json --cwd missing -- true
result 125 options '"code": "request-invalid"' run --json --nope -- true
result 125 policy '"code": "policy-invalid", .*"key": "filesystem.mounts\[1\].host_path"' run --json --ro /missing -- true
echo '{"version": 1, "filesystem": {"working_dir": "/workspace", "workspace_root": "'"$PWD"'"}, "network": {"timeout_ms": 1000}}' >"$tmp/incompatible"
result 125 incompatible '"code": "policy-incompatible", .*"key": "network.timeout_ms"' run --json --policy "$tmp/incompatible" -- true
result 1 denied '"exit_code": 1' run --json --ro "$tmp/lib:/opt/stella" -- sh -c 'touch new; cp /opt/stella/file copy; mv copy moved; rm f; rm /opt/stella/file'
result 0 names '"exit_code": 0' run --json -- sh -c 'touch "$(printf "not-utf8-\377")"'

# Canceled: by a signal, which is told to a process of its own.
"$EXEC" run --json --kill-after 300ms -- sh -c 'trap "" TERM; touch ready; while :; do sleep 0.1; done' >"$results/canceled" &
pid=$!
test_pids+=("$pid")
wait_for 20 test -e ready || fail 'the command to be canceled has started'
kill -TERM "$pid"
wait "$pid" || true
cp "$results/canceled" "$out_file"
expect_match out '"ended": "canceled"'

schema=$STELLA_TEST_LIB/../../executor/result.schema.json
validate() { python3 "$STELLA_TEST_LIB/../api/check-schema.py" "$schema" "$@"; }
run validate "$results"/*
if [ "$status" = 77 ]; then
  skip 'results fit their schema' "$out"
  finish
fi
check_equal 'results fit their schema' "$status" 0
cat "$out_file"
check_equal 'all of them' "$(cut -d' ' -f1-3 "$out_file")" "$(find "$results" -type f | wc -l) documents fit,"

# A mistake in the test of the schema would show here.
sed 's/"ended": "exited"/"ended": "vanished"/' "$results/text" >"$tmp/wrong"
expect_status 1 validate "$tmp/wrong"

finish
