#!/usr/bin/env bash
# limits.memory_bytes and limits.processes at the command line: by root, who can make cgroups or is told why not, and by an
# ordinary user who cannot. it-limits.c has what they do.
. "${STELLA_TEST_LIB:?run this test through meson test}/sh-lib.sh"
preflight root fuse userns || exit $?

USER_ID=1234
home=$tmp/home
mkdir "$home" "$home/ws"
chown -R $USER_ID:$USER_ID "$home"
FIVE='for i in 1 2 3 4; do sleep 100 & done; echo five; sleep 100 & echo six'
# A user's connections are not in the list, but those of root's sandboxes elsewhere on the machine are.
left() {
  list_leaks | grep -v '^connection ' || true
}
as() {
  as-user --home "$home" $USER_ID -- "$@"
}

echo "--- an ordinary user"
export STELLA_STATE_DIR=$home/state
expect_status 0 as "$EXEC" run --workspace "$home/ws" --json --limit memory_bytes=64M -- true
before=$(left)
expect_match out '"limits_hit": \[\], "limits_unenforced": \["memory_bytes"'
check_equal "the result says it to programs: nothing on stderr" "$err" ""
# Many processes of that user elsewhere do not count.
for _ in 1 2 3 4 5 6 7 8 9 10; do background as sleep 1000; done
expect_status 2 as "$EXEC" run --workspace "$home/ws" --limit processes=5 -- sh -c "$FIVE"
check_equal "a limit of processes needs no cgroup" "$out" five
expect_one_line err
expect_match err 'sh: .*ork'
expect_status 0 as "$EXEC" run --workspace "$home/ws" --limit processes=5 --limit required=true -- \
  sh -c 'for i in 1 2 3 4; do sleep 100 & done; echo five'
expect_status 0 as "$EXEC" run --workspace "$home/ws" --limit memory_bytes=64M -- echo ran
check_equal "an optional limit of memory does not keep it from running" "$out" ran
expect_one_line err
expect_match err '^stella-exec: limits.memory_bytes cannot be enforced here \('
expect_status 125 as "$EXEC" run --workspace "$home/ws" --limit memory_bytes=64M --limit required=true -- touch /workspace/ran
expect_one_line err
expect_match err '^stella-exec: limits.memory_bytes cannot be enforced, .* \(.*scope.*\)$'
check_not "a required one does" test -e "$home/ws/ran"
expect_status 125 as "$EXEC" run --workspace "$home/ws" --json --limit memory_bytes=64M --limit required=true -- true
expect_match out '"error": \{"code": "limit-unenforceable", "stage": "limits", "errno": "E[A-Z]+", "key": "limits.memory_bytes", '
check_equal "nothing is left" "$(left)" "$before"

echo "--- root, without cgroups"
export STELLA_STATE_DIR=$tmp/state
cat >"$tmp/without.sh" <<'END'
awk '{ for (i = 7; $i != "-"; i++); if ($(i + 1) ~ /^cgroup/) print $5 }' /proc/self/mountinfo | tac |
  while read -r dir; do umount -l "$dir"; done
exec "$@"
END
without() {
  unshare --mount --propagation private bash "$tmp/without.sh" "$@"
}
expect_status 125 without "$EXEC" run --workspace "$home/ws" --limit memory_bytes=64M --limit required=true -- true
expect_match err '^stella-exec: limits.memory_bytes cannot be enforced, .*no file system of cgroups'
expect_status 2 without "$EXEC" run --workspace "$home/ws" --limit processes=5 --limit required=true -- sh -c "$FIVE"
check_equal "a limit of processes holds" "$out" five

echo "--- root"
run "$EXEC" run --workspace "$home/ws" --json --limit processes=5 -- sh -c "$FIVE"
expect_match out '"stdout": "five\\n"'
if grep -q cgroup2 <(stat -fc %T /sys/fs/cgroup); then
  echo "whether cgroups of version 2 can be made depends on where this runs: it-limits"
else
  expect_match out '"limits_hit": \["processes"\], "limits_unenforced": \[("network.*)?\]'
fi
finish
