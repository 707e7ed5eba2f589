#!/usr/bin/env bash
# What a person is told of a command that failed because something was refused: which operation, on which path,
# why, and where writing is allowed.
. "${STELLA_TEST_LIB:?run this test through meson test}/sh-lib.sh"
preflight root fuse userns seccomp || exit $?

EXEC=$STELLA_TEST_BUILD/executor/stella-exec
export STELLA_STATE_DIR=$tmp/state
ws=$tmp/ws
mkdir "$ws" "$tmp/tools"
echo kept >"$tmp/tools/file"
cd "$ws"
chmod 755 "$tmp" "$tmp/tools"

lines() { grep -c 'denied: ' "$tmp/.err" || true; }

expect_status 1 "$EXEC" run --ro "$tmp/tools:/opt/stella" -- touch /opt/stella/new
expect_line err 'stella-exec: denied: create /opt/stella/new: read-only mount /opt/stella; writable: /workspace /user /tmp'
expect_status 1 "$EXEC" run --ro "$tmp/tools:/opt/stella" -- ln -s x /opt/stella/link
expect_line err 'stella-exec: denied: symlink /opt/stella/link: read-only mount /opt/stella; writable: /workspace /user /tmp'
check_equal 'nothing was made' "$(ls "$tmp/tools")" file

# Equal ones are one line, and there are five lines at the most.
expect_status 3 "$EXEC" sh --ro "$tmp/tools:/ro" 'rm -f /ro/file /ro/file; for i in 1 2 3 4 5 6 7; do touch /ro/$i; done; exit 3'
check_equal 'five lines' "$(lines)" 5
expect_match err 'denied: unlink /ro/file: read-only mount /ro'
check_equal 'the file is there' "$(cat "$tmp/tools/file")" kept

# Of a command that came through nobody is told, nor of one that has to be quiet; nor of what was allowed.
expect_status 0 "$EXEC" sh --ro "$tmp/tools:/ro" 'rm -f /ro/file; exit 0'
check_equal 'success: no line' "$(lines)" 0
expect_status 1 "$EXEC" run --quiet --ro "$tmp/tools:/ro" -- touch /ro/new
check_equal '--quiet: no line' "$(lines)" 0
expect_status 4 "$EXEC" sh --ro "$tmp/tools:/ro" ': >made; cat /ro/file; exit 4'
check_equal 'nothing refused: no line' "$(lines)" 0

# A name that an agent has chosen is no control sequence here.
expect_status 1 "$EXEC" run --ro "$tmp/tools:/ro" -- touch $'/ro/a\e[31m\nb'
check_equal 'one line' "$(lines)" 1
expect_no_match err $'\e'

# In the object there is all of it, and nothing on stderr; of another command there is nothing in it.
expect_status 1 "$EXEC" run --json --ro "$tmp/tools:/ro" -- touch /ro/new
expect_match out '"denials": \[\{"op": "create", "path": "/ro/new", "mount": "/ro", "reason": "read-only-mount", "errno": "EROFS", "count": 1\}\]'
check_equal '--json: no line' "$(lines)" 0
expect_status 0 "$EXEC" run --json --ro "$tmp/tools:/ro" -- sh -c 'echo x >new; mv new moved; mkdir dir'
expect_match out '"denials": \[\]'
expect_match out '\{"path": "/workspace/moved", "change": "created"\}'
expect_match out '\{"path": "/workspace/dir", "change": "created"\}'
expect_no_match out 'workspace/new'

# A program of the host's that the view does not have.
printf '#!/bin/sh\necho it ran\n' >"$tmp/tools/only-here"
chmod +x "$tmp/tools/only-here"
PATH=$PATH:$tmp/tools expect_status 127 "$EXEC" run -- only-here
expect_match err "--ro $tmp/tools"
PATH=$PATH:$tmp/tools expect_status 0 "$EXEC" run --ro "$tmp/tools" -- "$tmp/tools/only-here"
expect_line out 'it ran'

# The same as an ordinary user.
mkdir -p "$tmp/home/ws"
chown -R 1234:1234 "$tmp/home"
expect_status 1 as-user --home "$tmp/home" 1234 -- "$EXEC" run --workspace "$tmp/home/ws" --ro "$tmp/tools:/ro" -- touch /ro/new
expect_match err 'denied: create /ro/new: read-only mount /ro; writable: /workspace /user /tmp'
finish
