#!/usr/bin/env bash
# Real work in the view: git, make, python, sqlite, tar, npm, each done beside the view too, and the outcomes
# compared. Offline: the repository and the C project are this one, copied.
. "${STELLA_TEST_LIB:?run this test through meson test}/sh-lib.sh"
preflight root fuse || exit $?
for program in git make cc python3 sqlite3 tar node npm; do
  command -v "$program" >/dev/null || skip "$program" "it is not installed"
done

source=$(cd "$STELLA_TEST_LIB/../.." && pwd)
expect_status 0 "$EXEC" run --workspace "$tmp" -- true
before=$(list_leaks)

# Some thousand files with a history: the sources, and headers of the system.
mkdir "$tmp/native" "$tmp/ws"
cp -r "$source/common" "$source/executor" "$source/fsgate" "$source/include" "$source/tests" "$tmp/native"
mkdir "$tmp/native/headers"
cp -rL /usr/include/linux /usr/include/*-linux-gnu /usr/include/glib-2.0 "$tmp/native/headers" 2>/dev/null || true
find "$tmp/native" -type f -size +256k -delete
cat >"$tmp/native/Makefile" <<'END'
CFLAGS = -O1 -D_GNU_SOURCE -I. $(shell pkg-config --cflags glib-2.0)
OBJECTS = $(patsubst %.c,%.o,$(wildcard common/*-util.c common/resolve.c common/syscall-wrap.c))
libsome.a: $(OBJECTS)
	ar rcs $@ $(OBJECTS)
END
export GIT_CONFIG_GLOBAL=$tmp/gitconfig
git config --global user.email agent@example.org
git config --global user.name agent
git config --global init.defaultBranch main
git config --global gc.auto 0 # its background process ends with the command in the view, and goes on beside it
git -C "$tmp/native" init -q
git -C "$tmp/native" add -A
git -C "$tmp/native" commit -qm 'all of it'
cp -a "$tmp/native/." "$tmp/ws"
files=$(find "$tmp/ws" -type f -not -path '*/.git/*' | wc -l)
check "the repository has $files files" test "$files" -gt 1500

in_view() {
  "$EXEC" sh --workspace "$tmp/ws" --setenv HOME=/user --setenv GIT_AUTHOR_DATE='2020-01-01T00:00:00Z' \
    --setenv GIT_COMMITTER_DATE='2020-01-01T00:00:00Z' --setenv GIT_CONFIG_COUNT=3 \
    --setenv GIT_CONFIG_KEY_0=user.email --setenv GIT_CONFIG_VALUE_0=agent@example.org \
    --setenv GIT_CONFIG_KEY_1=user.name --setenv GIT_CONFIG_VALUE_1=agent \
    --setenv GIT_CONFIG_KEY_2=gc.auto --setenv GIT_CONFIG_VALUE_2=0 "$1"
}
beside() {
  (cd "$tmp/native" && GIT_AUTHOR_DATE=2020-01-01T00:00:00Z GIT_COMMITTER_DATE=2020-01-01T00:00:00Z sh -c "$1")
}
# same WHAT COMMAND: status and output in the view are those beside it.
same() {
  local view native view_status=0 native_status=0
  view=$(in_view "$2" 2>&1) || view_status=$?
  native=$(beside "$2" 2>&1) || native_status=$?
  check_equal "$1: status" "$view_status" "$native_status"
  check_equal "$1: output" "$view" "$native"
}
same_tree() {
  # .git/index holds inode numbers; how objects are packed depends on git's threads (all of them are compared
  # by `git history`)
  if diff -r --no-dereference -x index -x pack -x packs "$tmp/native" "$tmp/ws" >"$tmp/diff"; then
    pass "$1: equal trees"
  else
    fail "$1: trees differ" "$(head -n 20 "$tmp/diff")"
  fi
}

same 'git status' 'git status --porcelain; git status --porcelain'
same 'git commit' 'echo "// more" >>common/limits.h && git commit -qam more && git log --format="%h %s" && git status --porcelain'
same 'git branch, checkout, rebase' 'git checkout -q -b side HEAD~1 && echo side >side.txt && git add side.txt &&
  git commit -qm side && git rebase -q main && git log --format="%h %s" && git checkout -q main && git merge -q side && git gc -q && git fsck'
same 'git stash and worktree' 'echo x >>side.txt && git stash -q && git stash pop -q && git checkout -q side.txt &&
  git worktree add -q wt side~1 && ls wt | head -n 3 && git worktree remove wt && git status --porcelain'
same 'git history' 'git fsck && git rev-list --all --objects | sort | sha256sum'
same_tree 'git'

same 'make -j2' 'make -s -j2 && ar t libsome.a && make -q && echo up to date'
check "the objects are equal" cmp "$tmp/native/common/fd-util.o" "$tmp/ws/common/fd-util.o"

same 'python venv' 'python3 -m venv --without-pip v && v/bin/python -c "import json, sys; print(json.dumps([1]), sys.prefix != sys.base_prefix)"'
same 'python threads and files' 'python3 -c "
import concurrent.futures as c, os, tempfile
d = tempfile.mkdtemp(dir=\".\")
def f(i):
    p = os.path.join(d, str(i))
    with open(p, \"w\") as h: h.write(str(i))
    with open(p) as h: v = int(h.read())
    os.rename(p, p + \"x\"); os.unlink(p + \"x\")
    return v
with c.ThreadPoolExecutor(8) as e: print(sum(e.map(f, range(500))))
os.rmdir(d)
"'

same 'sqlite in WAL mode' 'sqlite3 t.db "pragma journal_mode=wal; create table t(a);" &&
  for i in 1 2 3 4 5 6 7 8; do sqlite3 t.db "begin; insert into t values($i); insert into t values($i); commit"; done &&
  sqlite3 t.db "select count(*), sum(a) from t; pragma integrity_check"'
same 'two writers in one sqlite file' 'sqlite3 u.db "pragma journal_mode=wal; create table t(a);" &&
  for w in 1 2; do (for i in $(seq 40); do echo ".timeout 10000
insert into t values($w);"; done | sqlite3 u.db) & done; wait; sqlite3 u.db "select count(*) from t; pragma integrity_check"'

same 'tar and rm -rf' 'tar cf h.tar headers && mkdir x && tar xf h.tar -C x && diff -r headers x/headers && find x -type f | wc -l && rm -rf x h.tar && ls -A | sort'

mkdir -p "$tmp/pkg/package"
echo '{"name": "tiny", "version": "1.0.0", "main": "index.js", "bin": {"tiny": "index.js"}}' >"$tmp/pkg/package/package.json"
printf '#!/usr/bin/env node\nconsole.log("tiny works")\n' >"$tmp/pkg/package/index.js"
tar czf "$tmp/tiny.tgz" -C "$tmp/pkg" package
cp "$tmp/tiny.tgz" "$tmp/ws"
cp "$tmp/tiny.tgz" "$tmp/native"
if node=$(readlink -f "$(command -v node)") && [[ $node == /usr/* ]]; then
  same 'npm install' 'mkdir -p app && cd app && echo "{\"name\": \"app\", \"version\": \"1.0.0\"}" >package.json &&
    npm install --offline --no-audit --no-fund --no-update-notifier --silent ../tiny.tgz && node_modules/.bin/tiny && ls node_modules'
else
  skip 'npm install' 'node is not below /usr'
fi

same 'hard links, times, modes' 'echo a >a && ln a b && chmod 640 a && touch -d 2001-02-03T04:05:06.789Z a && stat -c "%a %h %s %Y %y" a b && rm a && stat -c %h b && rm b'
same 'a file of many megabytes' 'head -c 50000000 /dev/zero | tr "\0" "x" >big && sha256sum big && dd if=big of=big2 bs=1M status=none && cmp big big2 && truncate -s 1000 big && stat -c %s big && rm big big2'
same 'appending from eight processes' 'for p in 1 2 3 4 5 6 7 8; do (for i in $(seq 200); do echo "line of process $p and some more text"; done >>log) & done; wait; sort log | uniq -c | sort; rm log'
same 'a directory of 5,000 names' 'mkdir many && cd many && seq 5000 | xargs touch && ls | wc -l && ls -f | sort | uniq -d | wc -l && find . -name "*7" -delete && ls | wc -l && cd .. && rm -rf many && ls -d many'
same 'programs run right after they were written' 'for i in 1 2 3 4 5 6 7 8; do cp /bin/true ./t$i && ./t$i && rm t$i || echo failed; done; echo done'

find "$tmp/ws" ! -user 0 >"$tmp/strangers"
check_equal "every file belongs to the owner of the workspace" "$(cat "$tmp/strangers")" ''
expect_no_leaks "nothing is left" "$before"
finish
