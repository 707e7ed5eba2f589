# What the examples have to print, for whoever runs them: from the build directory and from an installation.
#
# shellcheck shell=bash
# shellcheck disable=SC2154 # what sh-lib.sh sets

# run_examples DIR: its programs, and the one in Python with what LIBSTELLA and the loader say.
run_examples() {
  local dir=$1 tools
  rm -rf "$tmp/ws" "$tmp/secret"
  mkdir "$tmp/ws"
  echo secret >"$tmp/secret"
  tools=("$dir/file-tools" "$tmp/ws")

  echo '--- a boundary for file tools'
  expect_status 0 "${tools[@]}" write notes/today.txt 'buy milk'
  check_equal 'the host has it' "$(cat "$tmp/ws/notes/today.txt")" 'buy milk'
  expect_status 0 "${tools[@]}" edit /workspace/notes/today.txt milk bread
  expect_status 0 "${tools[@]}" read notes/today.txt
  check_equal 'what was edited' "$out" 'buy bread'
  expect_status 0 "${tools[@]}" open notes/../notes/today.txt
  check_equal 'by descriptor' "$out" 'buy bread'
  expect_status 0 "${tools[@]}" list .
  check_equal 'a list' "$out" 'notes/'
  ln -s "$tmp/secret" "$tmp/ws/way-out"
  expect_status 1 "${tools[@]}" read way-out
  expect_match err '^symlink: .*way-out'
  expect_status 1 "${tools[@]}" write way-out overwritten
  expect_status 1 "${tools[@]}" open "$tmp/secret"
  expect_match err '^outside-mounts: '
  expect_status 1 "${tools[@]}" edit notes/today.txt milk bread
  expect_match err '^no-match: '
  check_equal 'what is outside is as it was' "$(cat "$tmp/secret")" secret
  rm "$tmp/ws/way-out"

  echo '--- three commands'
  expect_status 0 "$dir/three-commands" "$tmp/ws"
  expect_match out '^6 greeting$'
  expect_match out '^HELLO$'
  expect_match out '^exit 1$'
  expect_match out '^refused: [a-z]* /etc/passwd: read-only-mount$'
  expect_match out '^created: /workspace/greeting$'
  check_equal 'the last one ended by itself' "$(tail -n 1 "$out_file")" 'exit 0'

  echo '--- a session that survives its gateway'
  rm -f "$tmp/ws/log"
  expect_status 0 "$dir/survivor" "$tmp/ws"
  check_equal 'all of it' "$out" 'first
the gateway is dead: alive 0
first
second
a new one: alive 1'

  echo '--- a conversation'
  expect_status 0 "$dir/conversation" "$tmp/ws"
  check_equal 'all of it' "$out" 'you said hello
you said goodbye
exit 0'

  # a sanitizer's runtime has to be loaded first, which python3 does not do
  sanitized "$dir/conversation" && return
  echo '--- from Python'
  expect_status 0 python3 "$STELLA_TEST_LIB/../examples/agent.py" "$tmp/ws"
  expect_match out '^sandbox-$'
  expect_match out '^exited [12] hello$'
  expect_match out "'path': '/workspace/from-python', 'change': 'modified'"
  expect_match out "^b'hello\\\\nbye\\\\n'$"
  expect_match out '^refused: refused$' # what /etc hides
}
