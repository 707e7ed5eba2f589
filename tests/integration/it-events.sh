#!/usr/bin/env bash
# `stella-fsgate events`: changes and denials of a mounted view as they happen, whoever makes them; who follows, who is slow,
# and who may not.
. "${STELLA_TEST_LIB:?run this test through meson test}/sh-lib.sh"
preflight root fuse || exit $?

before=$(list_leaks)
cd "$tmp"
mkdir -p ws ro mnt none
echo old >ws/old
echo f >ro/f
V=$tmp/mnt
expect_status 0 "$FSGATE" mount --workspace ws --ro "$tmp/ro:/ro" "$V"

# shown: the lines, without their times.
shown() {
  "$FSGATE" events "$V" | sed 's/^[0-9:.]* //'
}

quiet_status() {
  "$FSGATE" status "$V" >/dev/null
}

echo "--- what has happened"
check_equal "nothing yet" "$(shown)" ""
echo new >mnt/workspace/new
mv mnt/workspace/new mnt/workspace/moved
echo more >>mnt/workspace/old
chmod 600 mnt/workspace/old
mkdir mnt/workspace/d
rmdir mnt/workspace/d
check_not "refused" sh -c "echo x 2>/dev/null >>mnt/ro/f"
cat mnt/workspace/old >/dev/null
check "the close is told" wait_for 5 sh -c "'$FSGATE' events '$V' | grep -q ' modified '"
check_equal "each, in order, and reading is none" "$(shown | sort)" "created /workspace/d
created /workspace/new
deleted /workspace/d
denied open /ro/f: read-only-mount (EROFS)
modified /workspace/old
modified /workspace/old
renamed /workspace/moved from /workspace/new"
check_equal "on the host too" "$(cat ws/moved) $(stat -c %a ws/old) $(cat ro/f)" "new 600 f"
echo beside >ws/beside
check_equal "what the host does beside it is none" "$(shown | grep -c beside || :)" 0

echo "--- as JSON"
"$FSGATE" events --json "$V" | python3 -c '
import json, sys
rows = [json.loads(line) for line in sys.stdin]
assert [r["seq"] for r in rows] == list(range(1, len(rows) + 1)), rows
for r in rows:
    keys = {"event", "path", "pid", "pidns", "time_ms", "seq", "cut"}
    keys |= {"op", "mount", "reason", "errno", "target"} if r["event"] == "denial" else {"change", "from"}
    assert set(r) == keys, r
    assert r["pidns"] is None and r["cut"] is False and r["time_ms"] > 0
moved = [r for r in rows if r.get("change") == "renamed"]
assert [(r["path"], r["from"]) for r in moved] == [("/workspace/moved", "/workspace/new")], moved
denied = [(r["op"], r["path"], r["mount"], r["reason"], r["errno"]) for r in rows if r["event"] == "denial"]
assert denied == [("open", "/ro/f", "/ro", "read-only-mount", "EROFS")], denied' &&
  pass "every key is there" || fail "every key is there"
printf x >"mnt/workspace/$(printf 'a\nb\033[31m\377')"
expect_status 0 "$FSGATE" events "$V"
expect_no_match out "$(printf '\033')"
expect_status 0 "$FSGATE" events --json "$V"
expect_match out '"b64"'

echo "--- following"
"$FSGATE" events --follow "$V" >followed 2>&1 &
follower=$!
check "what was comes first" wait_for 5 grep -q 'renamed /workspace/moved' followed
echo x >mnt/workspace/later
check "what comes, comes" wait_for 5 grep -q 'created /workspace/later' followed
check_equal "once" "$(grep -c 'created /workspace/later' followed)" 1
check "status is answered meanwhile" quiet_status

echo "--- who does not read"
exec 7> >(sleep 600)
reader=$!
"$FSGATE" events --follow --json "$V" >&7 &
slow=$!
exec 7>&-
python3 - "$V/workspace" <<'PY'
import os, sys
for i in range(5000):
    try: os.mkdir(sys.argv[1] + "/old")
    except FileExistsError: pass
    os.close(os.open(sys.argv[1] + "/s%d" % (i % 10), os.O_WRONLY | os.O_CREAT | os.O_TRUNC))
PY
check "holds up nobody" quiet_status
check "the other follower goes on" wait_for 20 sh -c "tail -n 1 followed | grep -q '/workspace/s9'"
expect_status 0 "$FSGATE" events "$V"
expect_match out '^\([0-9]* earlier ones are gone\)$'
check_equal "the newest are kept" "$(wc -l <"$out_file")" 1025
kill "$slow" "$reader"
wait "$slow" || :

echo "--- at most four"
followers=()
for i in 1 2 3 4 5 6; do
  "$FSGATE" events --follow "$V" >/dev/null 2>"refused.$i" &
  followers+=($!)
done
three_refused() {
  [ "$(cat refused.? | grep -c 'too many programs wait for events already')" = 3 ]
}
check "three more, and three are refused" wait_for 20 three_refused
check "and status is answered" quiet_status
kill "${followers[@]}" 2>/dev/null || : # half of them have gone
wait "${followers[@]}" || :

echo "--- the end, and what is none"
expect_status 0 "$FSGATE" unmount "$V"
wait "$follower" && pass "the end of the view ends who follows" || fail "the end of the view ends who follows"
expect_status 1 "$FSGATE" events "$V"
expect_match err '^stella-fsgate: events: ".*/mnt": no view is mounted there$'
expect_status 2 "$FSGATE" events
expect_status 2 "$FSGATE" events --nothing "$V"
expect_status 2 "$FSGATE" events "$V" "$V"
expect_no_leaks "nothing is left" "$before"
finish
