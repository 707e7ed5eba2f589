#!/usr/bin/env bash
# Real tool chains, found by shims in a session, with their caches in one mount and the work in another: what pip, npm,
# gcc and git leave is what they leave beside the view. Offline.
#
# shellcheck disable=SC1091,SC2016,SC2154 # what sh-lib.sh sets; texts that an inner shell expands
. "${STELLA_TEST_LIB:?run this test through meson test}/sh-lib.sh"
. "$STELLA_TEST_LIB/mise-lib.sh"
preflight root fuse userns || exit $?

home=$tmp/home
system=$home/.mise-tools
policy=$tmp/policy.json
native=$tmp/native
mkdir -p "$home/bin" "$system/shims" "$tmp/ws" "$tmp/data" "$native" "$tmp/cache"
cp "$STELLA_TEST_TOOLS/mise-stand-in" "$home/bin/mise"

# installs of the system's tree whose programs are those of /usr
have=()
for tool in node npm python3 gcc git; do
  if [ ! -x "/usr/bin/$tool" ]; then
    skip "$tool" 'it is not in /usr/bin'
    continue
  fi
  have+=("$tool")
  mkdir -p "$system/installs/$tool/1.0/bin"
  ln -s "/usr/bin/$tool" "$system/installs/$tool/1.0/bin/$tool"
  ln -s ./1.0 "$system/installs/$tool/latest"
  ln -s /nonexistent/bin/mise "$system/shims/$tool"
done
has() {
  [[ " ${have[*]} " == *" $1 "* ]]
}
write_policy "$policy" "$home" u1 '"npm_config_cache": "/user/.npm", "npm_config_update_notifier": "false", "PIP_CACHE_DIR": "/user/.pip", "GIT_AUTHOR_DATE": "2020-01-01T00:00:00Z", "GIT_COMMITTER_DATE": "2020-01-01T00:00:00Z",'
in_view() {
  "$EXEC" sh --policy "$policy" "$1"
}
beside() {
  (cd "$native" && env -i HOME="$native" PATH=/usr/bin:/bin LANG=C.UTF-8 npm_config_cache="$tmp/cache/npm" npm_config_update_notifier=false \
    PIP_CACHE_DIR="$tmp/cache/pip" GIT_AUTHOR_DATE=2020-01-01T00:00:00Z GIT_COMMITTER_DATE=2020-01-01T00:00:00Z sh -c "$1")
}
# same WHAT COMMAND: status and output in the view are those beside it, and the status is 0.
same() {
  local view native_out view_status=0 native_status=0
  view=$(in_view "$2" 2>&1) || view_status=$?
  native_out=$(beside "$2" 2>&1) || native_status=$?
  check_equal "$1: status" "$view_status $native_status" '0 0'
  check_equal "$1: output" "$view" "$native_out"
}
# same_tree WHAT DIRECTORY [OPTION OF diff]...
same_tree() {
  local what=$1 directory=$2
  shift 2
  if diff -r --no-dereference "$@" "$native/$directory" "$tmp/ws/$directory" >"$tmp/diff"; then
    pass "$what: equal trees, $(find "$tmp/ws/$directory" -type f | wc -l) files"
  else
    fail "$what: trees differ" "$(head -n 20 "$tmp/diff")"
  fi
}
expect_status 0 in_view true
before=$(list_leaks)

echo '--- the tools are those of the tree'
for tool in "${have[@]}"; do
  expect_status 0 in_view "command -v $tool && $tool --version"
  expect_line out "/opt/stella/.mise-tools/shims/$tool"
  check_equal "$tool has nothing to say" "$err" ''
done

echo '--- hard links between mounts'
echo content >"$tmp/data/cached"
mkdir "$tmp/data/store"
echo content >"$tmp/data/store/f"
run in_view 'ln /user/cached /workspace/linked'
check_not 'there are none' test "$status" = 0
expect_match err 'Invalid cross-device link'
run in_view 'cp -rl /user/store /workspace/store'
expect_match err 'Invalid cross-device link'
check 'nothing was made' test ! -e "$tmp/ws/linked" -a ! -e "$tmp/ws/store/f"
expect_status 0 in_view 'ln /user/cached /user/linked && stat -c %h /user/linked && mv /user/linked /workspace/moved && cat /workspace/moved'
check_equal 'within one there are, and what is moved is copied' "$out" "$(printf '2\ncontent')"
check_equal 'by itself' "$(stat -c %h "$tmp/ws/moved" "$tmp/data/cached" | tr '\n' ' ')" '1 1 '
rm -rf "$tmp/ws/moved" "$tmp/ws/store"
if has python3; then
  # as uv, pnpm and cargo do: a link, and if that is of two file systems, a copy
  expect_status 0 in_view 'python3 - <<"PY"
import errno, os, shutil
try:
    os.link("/user/cached", "/workspace/linked")
except OSError as error:
    print(errno.errorcode[error.errno])
    shutil.copy2("/user/cached", "/workspace/linked")
print(open("/workspace/linked").read(), end="")
PY'
  check_equal 'the error is the one that they look for' "$out" "$(printf 'EXDEV\ncontent')"
  rm "$tmp/ws/linked"
fi

if has python3; then
  echo '--- pip'
  # a wheel, made by hand: thirty modules and a script
  python3 - "$tmp" <<'PY'
import base64, hashlib, sys, zipfile
files = {f"tiny/m{i}.py": f"value = {i}\n" for i in range(30)}
files["tiny/__init__.py"] = "def main():\n    print('tiny works')\n"
info = "tiny-1.0.dist-info/"
files[info + "METADATA"] = "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n"
files[info + "WHEEL"] = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
files[info + "entry_points.txt"] = "[console_scripts]\ntiny = tiny:main\n"
def record(name, text):
    digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(text)}\n"
lines = "".join(record(name, text) for name, text in files.items())
files[info + "RECORD"] = lines + info + "RECORD,,\n"
for place in "ws", "native":
    with zipfile.ZipFile(f"{sys.argv[1]}/{place}/tiny-1.0-py3-none-any.whl", "w") as wheel:
        for name, text in files.items():
            wheel.writestr(zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0)), text)
PY
  same 'venv and pip install' 'python3 -m venv v && v/bin/pip install --quiet --disable-pip-version-check --no-index --root-user-action ignore --find-links . tiny &&
    v/bin/tiny && v/bin/python -c "import tiny.m7; print(tiny.m7.value)" && ls v/bin && v/bin/pip list --disable-pip-version-check'
  same_tree 'its packages' v/lib -x __pycache__ -x RECORD # the scripts in bin, of which RECORD has hashes, hold their own path
  same 'pip uninstall' 'v/bin/pip uninstall --quiet --yes --disable-pip-version-check --root-user-action ignore tiny && ls v/bin && rm -rf v && ls'
fi

if has node && has npm; then
  echo '--- npm'
  mkdir -p "$native/packages" "$native/app"
  for i in $(seq 40); do
    mkdir -p "$tmp/make/package/lib"
    printf '{"name": "p%s", "version": "1.0.%s", "main": "index.js", "bin": {"p%s": "index.js"}}\n' "$i" "$i" "$i" >"$tmp/make/package/package.json"
    printf '#!/usr/bin/env node\nconsole.log("p%s works")\n' "$i" >"$tmp/make/package/index.js"
    for j in $(seq 50); do echo "exports.value = $i * $j" >"$tmp/make/package/lib/$j.js"; done
    tar czf "$native/packages/p$i.tgz" -C "$tmp/make" package
    rm -rf "$tmp/make"
  done
  {
    printf '{"name": "app", "version": "1.0.0", "dependencies": {'
    for i in $(seq 40); do printf '%s"p%s": "file:../packages/p%s.tgz"' "$([ "$i" = 1 ] || echo ', ')" "$i" "$i"; done
    echo '}}'
  } >"$native/app/package.json"
  expect_status 0 beside 'cd app && npm install --package-lock-only --offline --no-audit --no-fund'
  cp -a "$native/packages" "$native/app" "$tmp/ws"
  same 'npm ci' 'cd app && npm ci --offline --no-audit --no-fund --silent && node_modules/.bin/p7 && ls node_modules | wc -l'
  same_tree 'node_modules' app
  check 'the cache is in the other mount' test -d "$tmp/data/.npm/_cacache"
  same 'again, from the cache' 'cd app && npm ci --offline --no-audit --no-fund --silent && npm ls --all --offline | tail -n +2 | sort'
  same 'rm -rf node_modules' 'cd app && rm -rf node_modules && ls -A'
fi

if has gcc; then
  echo '--- gcc'
  cat >"$tmp/ws/hello.c" <<'C'
#include <stdio.h>
int main(void) { puts("hello"); return 0; }
C
  cp -a "$tmp/ws/hello.c" "$native"
  same 'a program and a library' 'gcc -O2 -g0 -c hello.c && gcc -o hello hello.o && ./hello && gcc -shared -fPIC -o libhello.so hello.c && sha256sum hello.o hello libhello.so'
fi

if has git; then
  echo '--- git'
  same 'a repository' 'mkdir r && cd r && git init -q -b main && git config user.name a && git config user.email a@b && cp ../*.c . 2>/dev/null; echo x >x &&
    git add . && git commit -qm one && git clone -q . ../c && cd ../c && git status --porcelain && git log --format=%H && git fsck'
  same_tree 'its objects' r/.git/objects
fi

echo '--- a user without a name, without USER, with HOME in the workspace'
sed 's|"network"|"process": {"user": 4711}, "network"|' "$policy" >"$tmp/nobody.json"
quiet='id -u; echo $HOME'
has git && quiet+='; mkdir -p q && cd q && git init -q -b main && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m one && git status --porcelain; cd ..'
has node && quiet+='; node -e "require(\"os\").homedir()"; npm config get registry >/dev/null && npm ls --offline >/dev/null'
has python3 && quiet+='; python3 -c "import os, tempfile; os.path.expanduser(\"~\"); tempfile.mkdtemp()"'
expect_status 0 "$EXEC" sh --policy "$tmp/nobody.json" --unsetenv USER --unsetenv LOGNAME --setenv HOME=/workspace "$quiet"
check_equal 'it is who it is' "$out" "$(printf '4711\n/workspace')"
check_equal 'and no tool complains' "$err" ''

expect_no_leaks 'nothing is left' "$before"
finish
