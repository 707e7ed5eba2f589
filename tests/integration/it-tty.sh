#!/usr/bin/env bash
# stella-exec --tty where nobody sits at a terminal: input from pipes and files, output that is captured.
# it-terminal.c has the rest.
#
# shellcheck disable=SC1091,SC2016,SC2154 # what sh-lib.sh sets; texts that the inner shell expands
. "${STELLA_TEST_LIB:?run this test through meson test}/sh-lib.sh"
preflight root fuse || exit $?

ws=$tmp/ws
mkdir "$ws"
cd "$ws" || exit 1
expect_status 0 "$EXEC" run -- true
before=$(list_leaks)

# None without it; a terminal of the default size with it, for all three streams.
expect_status 1 "$EXEC" run -- tty
expect_status 0 timeout 20 "$EXEC" run --tty -- sh -c 'tty; stty size; for f in 0 1 2; do test -t $f && echo is $f; done; echo err >&2' </dev/null
check_equal 'terminal, size, streams' "$(tr -d '\r' <<<"$out")" "$(printf '/dev/pts/0\n24 80\nis 0\nis 1\nis 2\nerr')"
check_equal 'nothing apart on stderr' "$err" ''
expect_status 0 timeout 20 "$EXEC" sh --tty 'tty >tty; ls /dev/pts' </dev/null
check_equal 'for sh too' "$(cat "$ws/tty")" /dev/pts/0

# The end of input: for one reader, for all that follow, without a newline before it, for a shell that
# changes its terminal's modes before each line, and for one that is busy when it comes.
expect_status 0 timeout 20 sh -c 'echo line | "$1" run --tty -- cat' sh "$EXEC"
check_equal 'echoed and printed' "$(tr -d '\r' <<<"$out")" "$(printf 'line\nline')"
expect_status 0 timeout 20 sh -c 'printf abc | "$1" run --tty -- sh -c "stty -echo; cat; cat; cat"' sh "$EXEC"
expect_match out 'abc$'
expect_status 7 timeout 20 sh -c 'echo "sleep 0.5; echo do\"\"ne; (exit 7)" | "$1" run --tty -- bash --norc' sh "$EXEC"
expect_match out '^.*done'
expect_status 0 timeout 20 "$EXEC" run --tty -- cat </dev/null
expect_status 0 timeout 20 "$EXEC" run --tty -- cat <&-
echo from-file >input
expect_status 0 timeout 20 "$EXEC" run --tty --stdin input -- cat
expect_match out 'from-file'
expect_status 0 timeout 60 sh -c 'seq 20000 | "$1" run --tty -- sh -c "stty -echo; cat >got"' sh "$EXEC"
check_equal 'large input is whole' "$(sha256sum <got)" "$(seq 20000 | sha256sum)"

# Output that nobody takes hangs the command up.
check_equal 'a closed consumer ends the command' "$(timeout 20 "$EXEC" run --tty -- yes </dev/null | head -1 | tr -d '\r' || true)" y
mkfifo keys
exec 8<>keys
check_equal 'also when there is more to type' "$(timeout 20 "$EXEC" run --tty -- yes <keys | head -1 | tr -d '\r' || true)" y
exec 8<&-
rm keys
check_equal 'large output is whole' "$(timeout 60 "$EXEC" run --tty -- sh -c 'stty -opost; seq 300000' </dev/null | sha256sum)" \
  "$(seq 300000 | sha256sum)"

# Ends.
for code in 0 3 125 255; do
  expect_status "$code" timeout 20 "$EXEC" run --tty -- sh -c "exit $code" </dev/null
done
expect_status 127 "$EXEC" run --tty -- no-such-program </dev/null
expect_one_line err
expect_status 124 timeout 20 "$EXEC" run --tty --timeout 500ms -- sh -c 'trap "" HUP INT TERM; sleep 100' </dev/null
expect_status 137 timeout 20 "$EXEC" run --tty -- sh -c 'kill -KILL $$' </dev/null

# Captured: the stream of the terminal is stdout, and nothing in it is a control character any more.
expect_status 5 timeout 20 "$EXEC" run --tty --json -- sh -c 'printf "\033[31mred\033]52;c;eA==\a\r\n\302\233"; echo err >&2; stty size; cat; exit 5'
expect_one_line out
check_equal 'no control character' "$(tr -d '\n' <"$out_file" | LC_ALL=C tr -dc '\0-\037\177\302' | wc -c)" 0
check_equal 'stdout' "$(python3 -c 'import json, sys; r = json.load(sys.stdin); print(ascii(r["stdout"]), ascii(r["stderr"]), r["ended"])' <"$out_file")" \
  "'\\x1b[31mred\\x1b]52;c;eA==\\x07\\r\\r\\n\\x9berr\\r\\n24 80\\r\\n' '' exited"
expect_status 0 timeout 20 "$EXEC" run --tty --result "$tmp/result" -- echo live </dev/null
expect_match out '^live'
check 'and beside live output' grep -q '"stdout": "live\\r\\n"' "$tmp/result"

# shell, without a terminal: the commands of its input.
expect_status 3 timeout 20 sh -c 'printf "tty; echo \$0 [\$HISTFILE]; exit 3" | "$1" shell' sh "$EXEC"
check_equal 'the shell of the view' "$out" "$(printf 'not a tty\nbash []')"
expect_status 4 timeout 20 sh -c 'echo "tty; exit 4" | "$1" shell --tty --no-network --cwd /tmp' sh "$EXEC"
expect_match out '/dev/pts/0'
for wrong in 'shell true' 'shell --json' 'shell --no-such'; do
  # shellcheck disable=SC2086 # words
  expect_status 125 "$EXEC" $wrong </dev/null
  if [ "$wrong" = 'shell --json' ]; then expect_match err '^stella-exec: --json: '; else expect_one_line err; fi
  expect_match err 'see stella-exec shell --help'
done
expect_status 0 "$EXEC" shell --help
expect_match out '^Usage: stella-exec shell'

expect_no_leaks 'terminals leave nothing' "$before"
finish
