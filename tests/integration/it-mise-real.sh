#!/usr/bin/env bash
# The real mise (tests/deps.sh fetches it; STELLA_TEST_MISE names another one) as the program of a tool tree, in
# sessions without a network: shims run the right versions and say nothing, an agent installs tools of its own, what is in
# its workspace is never run on the host, and whatever mise does, it writes to its user's tree only.
#
# shellcheck disable=SC1091,SC2016,SC2154 # what sh-lib.sh sets; texts that an inner shell expands
. "${STELLA_TEST_LIB:?run this test through meson test}/sh-lib.sh"
. "$STELLA_TEST_LIB/mise-lib.sh"
preflight root fuse userns || exit $?

mise=${STELLA_TEST_MISE:-$(bash "$STELLA_TEST_LIB/../deps.sh" --mise)}
if [ ! -x "$mise" ]; then
  skip 'the real mise' "there is no $mise: run tests/deps.sh --tests"
  finish
fi
for program in python3 tar; do
  command -v "$program" >/dev/null || skip "$program" "it is not installed"
done

home=$tmp/home
system=$home/.mise-tools
user=$home/users/u1/.mise-tools
policy=$tmp/policy.json
mkdir -p "$home/bin" "$system/shims" "$tmp/ws" "$tmp/data" "$tmp/host"
cp "$mise" "$home/bin/mise"
add_tool "$system" node 20.1.0 node
add_tool "$system" node 22.0.0 node
add_tool "$system" npm-prettier 3.0.0 prettier
ln -s ./22.0.0 "$system/installs/node/22"
cat >"$system/config.toml" <<'TOML'
[tools]
node = "22"
"npm:prettier" = "3.0.0"
TOML
for shim in node prettier; do ln -s /nonexistent/bin/mise "$system/shims/$shim"; done
write_policy "$policy" "$home" u1
expect_status 0 "$EXEC" run --workspace "$tmp/ws" -- true
before=$(list_leaks)
in_session() {
  "$EXEC" sh --policy "$policy" "$@"
}
# what holds whatever a session does; called at the end of each part
system_before=$(snapshot "$home/bin"; snapshot "$system")
expect_system_unchanged() {
  check_equal "the system's tree is as it was" "$(snapshot "$home/bin"; snapshot "$system")" "$system_before"
  check_equal 'nothing was run on the host' "$(ls -A "$tmp/host")" ''
}

echo '--- shims find the tools'
expect_status 0 in_session 'node one; prettier two; /opt/stella/.mise-tools/shims/node three'
expect_line out 'node 22.0.0:one'
expect_line out 'prettier 3.0.0:two'
expect_line out 'node 22.0.0:three'
check_equal 'and say nothing' "$err" ''
system_before=$(snapshot "$home/bin"; snapshot "$system") # the shims were made relative
printf '#!/opt/stella/.mise-tools/shims/node\n' >"$tmp/ws/script"
chmod 755 "$tmp/ws/script"
expect_status 0 in_session './script four; for shim in /opt/stella/.mise-tools/shims/*; do test -x "$shim" && "$shim"; done'
expect_line out 'node 22.0.0:./script four'
expect_line out 'prettier 3.0.0:'
check_equal 'nor now' "$err" ''
expect_status 0 in_session --setenv MISE_NODE_VERSION=20.1.0 'node'
expect_line out 'node 20.1.0:'
expect_status 0 in_session 'mise ls --installed'
expect_match out '^node +20\.1\.0 \(symlink\)'
expect_match out '^node +22\.0\.0 \(symlink\) +/opt/stella/\.mise-tools/config\.toml +22$'
expect_match out '^npm:prettier +3\.0\.0 \(symlink\)'
check_equal 'an alias is no version' "$(grep -c '^node' "$out_file")" 2
# a tree without shims is no fault: the system's are found by PATH; doctor looks at the user's alone
expect_status 0 in_session 'mise reshim && mise doctor'
expect_line out 'No problems found'
check_equal 'mise has nothing to say' "$err" ''
expect_status 0 in_session 'mise doctor | sed -n "s/^  \(cache\|config\|data\|state\|shims\): //p" | while read -r dir; do
  mkdir -p "$dir" && touch "$dir/probe" && rm "$dir/probe" && echo "$dir"; done'
check_equal 'each of its directories can be written to' "$(sort "$out_file" | tr '\n' ' ')" \
  "$(printf '/opt/stella/users/u1/.mise-tools%s ' '' /cache /config /shims /state)"
expect_system_unchanged

echo "--- without a tree of the user's: the system's installs are shared ones"
cat >"$tmp/shared.json" <<JSON
{"version": 1, "filesystem": {"workspace_root": "$tmp/ws", "working_dir": "/workspace", "stella_home": "$home",
   "mounts": [{"host_path": "$tmp/ws", "view_path": "/workspace", "access": "rw"},
     {"host_path": "$tmp/data", "view_path": "/user", "access": "rw"}]},
 "network": {"mode": "disabled"},
 "env": {"MISE_SHARED_INSTALL_DIRS": "$system/installs", "MISE_SYSTEM_CONFIG_DIR": "$system"}}
JSON
expect_status 0 "$EXEC" sh --policy "$tmp/shared.json" 'node; prettier; mise ls'
expect_line out 'node 22.0.0:'
expect_line out 'prettier 3.0.0:'
expect_match out '^node +22\.0\.0 \(shared\)'
check_equal 'nothing is said' "$err" ''
rm -rf "$tmp/ws/.local" "$tmp/ws/.config" "$tmp/data/.cache"
expect_system_unchanged

echo '--- an agent installs a tool of its own'
mkdir -p "$tmp/served/bin"
printf '#!/bin/sh\necho "served:$*"\n' >"$tmp/served/bin/served"
chmod 755 "$tmp/served/bin/served"
tar czf "$tmp/data/served.tgz" -C "$tmp" served
# A server of one file, on the loopback of a session. With "stall" it sends half of it and tells so by a file.
cat >"$tmp/data/serve.py" <<'PY'
import http.server, os, sys, time
data = open("/user/served.tgz", "rb").read()
class Handler(http.server.BaseHTTPRequestHandler):
    def do_HEAD(self):
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
    def do_GET(self):
        self.do_HEAD()
        if sys.argv[1:] == ["stall"]:
            self.wfile.write(data[: len(data) // 2])
            self.wfile.flush()
            open("/workspace/half", "w").close()
            time.sleep(1000)
        self.wfile.write(data)
    def log_message(self, *args):
        pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 8123), Handler)
if os.fork() == 0:
    server.serve_forever()
PY
spec='http:served[url=http://127.0.0.1:8123/served.tgz,strip_components=1]'
expect_status 0 in_session "python3 /user/serve.py && mise use -g '$spec@2.0.0' 2>&1 && served here"
expect_line out 'served:here'
check 'it is in their tree' test -x "$user/installs/http-served/2.0.0/bin/served"
check 'with a shim, which is a link' test -L "$user/shims/served"
expect_status 0 in_session 'served again; command -v served; command -v prettier'
expect_line out 'served:again'
expect_line out /opt/stella/users/u1/.mise-tools/shims/served
expect_line out /opt/stella/.mise-tools/shims/prettier
check_equal 'and says nothing' "$err" ''
check_equal 'relative by now' "$(readlink "$user/shims/served")" ../../../../bin/mise
expect_status 0 in_session 'mise reshim && mise ls --installed'
expect_system_unchanged

echo "--- a newer version of the user's comes before the system's"
add_tool "$user" node 22.5.0 node
expect_status 0 in_session 'mise use -g node@22 2>/dev/null && node && mise which node'
expect_line out 'node 22.5.0:'
expect_status 0 in_session 'node; MISE_NODE_VERSION=22.0.0 node; /opt/stella/.mise-tools/shims/node'
check_equal 'and can be chosen' "$out" "$(printf 'node 22.5.0:\nnode 22.0.0:\nnode 22.5.0:')"
expect_status 0 in_session --unsetenv MISE_DATA_DIR --setenv MISE_SHARED_INSTALL_DIRS=/opt/stella/.mise-tools/installs \
  --unsetenv MISE_CONFIG_DIR '/opt/stella/.mise-tools/shims/node'
expect_line out 'node 22.0.0:'
expect_system_unchanged

echo '--- what the workspace says is not run, on the host or unasked'
# by an agent of a user who has not used mise yet: \`exec\`, \`install\` and \`run\` take being called for trust
write_policy "$tmp/fresh.json" "$home" u2
in_fresh() {
  "$EXEC" sh --policy "$tmp/fresh.json" "$1"
}
run_marker="touch $tmp/host/marker; touch /workspace/marker"
mkdir -p "$tmp/ws/mise-tasks" "$tmp/ws/.mise/tasks" "$tmp/data/.mise/tasks" "$tmp/ws/sub"
printf '%s\n' "$run_marker" >"$tmp/ws/source.sh"
cat >"$tmp/ws/mise.toml" <<TOML
[settings]
trusted_config_paths = ["/"]
yes = true
paranoid = false
[env]
_.source = "/workspace/source.sh"
TEMPLATE = "{{ exec(command='$run_marker') }}"
[hooks]
enter = "$run_marker"
cd = "$run_marker"
preinstall = "$run_marker"
postinstall = "$run_marker"
[tasks.build]
run = "$run_marker"
[tools]
node = "{{ exec(command='$run_marker; echo 20.1.0') }}"
TOML
printf 'node {{ exec(command="%s; echo 20.1.0") }}\n' "$run_marker" >"$tmp/ws/sub/.tool-versions"
for task in "$tmp/ws/mise-tasks/build" "$tmp/ws/.mise/tasks/build" "$tmp/data/.mise/tasks/build"; do
  printf '#!/bin/sh\n%s\n' "$run_marker" >"$task"
  chmod 755 "$task"
done
cd "$tmp/ws" # every program of ours is called where an agent could have written
expect_status 0 "$EXEC" run --policy "$policy" -- true
expect_status 0 "$EXEC" run --workspace "$tmp/ws" --stella-home "$home" -- true
expect_status 0 "$FSGATE" check --policy "$policy"
run "$EXEC" doctor
mkdir "$tmp/mnt"
expect_status 0 "$FSGATE" mount --policy "$policy" "$tmp/mnt"
expect_status 0 ls "$tmp/mnt/opt/stella/.mise-tools/shims"
expect_status 0 "$FSGATE" unmount "$tmp/mnt"
check 'no session has run it' test ! -e "$tmp/ws/marker"
for command in 'node' 'mise ls' 'mise env' 'mise tasks ls' 'mise hook-env' 'mise doctor' 'mise completion bash' \
  'cd sub && node' 'cd sub && mise ls' 'cd .mise && mise tasks ls' 'cd /user && mise tasks ls'; do
  run in_fresh "$command"
  check "unasked: $command" test ! -e "$tmp/ws/marker"
done
run in_fresh 'mise ls'
check_not 'a workspace cannot trust itself' test "$status" = 0
expect_match err 'not trusted'
run in_fresh 'rm mise.toml; cd sub && node' # a template alone, in the older format
check 'nor a .tool-versions' test ! -e "$tmp/ws/marker"
expect_status 0 in_fresh 'cd / && node'
expect_line out 'node 22.0.0:'
check 'nothing was run' test ! -e "$tmp/ws/marker"
# inside, the agent may: it gains nothing that it has not
run in_fresh 'printf "[env]\n_.source = \"/workspace/source.sh\"\n" >mise.toml; mise trust /workspace/mise.toml && mise env'
check 'trusted by the agent it is run, inside' test -e "$tmp/ws/marker"
expect_status 0 "$EXEC" run --policy "$policy" -- true
expect_system_unchanged
cd "$tmp"
rm -rf "$tmp/ws" "$tmp/data/.mise"
mkdir "$tmp/ws"

echo '--- a plain .tool-versions'
echo 'node 20.1.0' >"$tmp/ws/.tool-versions"
expect_status 0 in_session 'node'
expect_line out 'node 20.1.0:'
rm "$tmp/ws/.tool-versions"

echo '--- versions that are paths'
mkdir "$tmp/ws/evil"
for version in /workspace/evil ../../x ../../../../.mise-tools/installs/x ../../../../../../etc/x; do
  run in_session "python3 /user/serve.py && mise install '$spec@$version'"
  check_equal "$version: nothing is there" "$(ls -A "$tmp/ws/evil"; find "$home" -maxdepth 3 -name x -not -path "$user/*"
    find /etc -maxdepth 1 -name x)" ''
done
expect_status 2 in_session 'mkdir /opt/stella/.mise-tools/installs/x || exit 2'
expect_match err 'Read-only file system'
find "$user/installs" -type l -exec realpath -m {} + | grep -v "^$home/" >"$tmp/outside" || true
check_equal 'no link of an install leads out of the home' "$(cat "$tmp/outside")" ''
# what mise has made of them is a name in their own tree, which it then complains of
rm -rf "$tmp/ws/evil" "$user/installs/http-served"/*evil*
expect_system_unchanged

echo '--- checksums'
run in_session "python3 /user/serve.py && mise install 'http:sum[url=http://127.0.0.1:8123/served.tgz,strip_components=1,checksum=sha256:$(printf '0%.0s' {1..64})]@1.0.0'"
check_not 'another checksum is an error' test "$status" = 0
expect_match err '[Cc]hecksum'
check 'and no install' test ! -e "$user/installs/http-sum/1.0.0"
sum=$(sha256sum "$tmp/data/served.tgz" | cut -d' ' -f1)
expect_status 0 in_session "python3 /user/serve.py && mise install 'http:sum[url=http://127.0.0.1:8123/served.tgz,strip_components=1,checksum=sha256:$sum]@1.0.0'"
check 'the right one is installed' test -d "$user/installs/http-sum/1.0.0"
cat >"$tmp/ws/mise.lock" <<'TOML'
[[tools.node]]
version = "20.1.0"
backend = "core:node"
"platforms.linux-x64" = { checksum = "sha256:00", url = "http://127.0.0.1:1/evil.tgz" }
TOML
expect_status 0 in_session 'node; prettier'
expect_line out 'node 22.5.0:'
expect_line out 'prettier 3.0.0:'
rm "$tmp/ws/mise.lock"
expect_system_unchanged

echo '--- whatever mise does, it writes to the tree of its user'
mkdir -p "$tmp/ws/plugin/bin"
printf '#!/bin/sh\necho 1.0.0\n' >"$tmp/ws/plugin/bin/list-all"
chmod 755 "$tmp/ws/plugin/bin/list-all"
places=$(find "$tmp/ws" "$tmp/data" | sort)
run in_session 'mise self-update --yes'
check_not 'mise cannot replace itself' test "$status" = 0
expect_status 0 in_session 'mise plugin link myplugin /workspace/plugin'
expect_status 0 in_session 'mise settings set --yes experimental true && mise settings get experimental'
expect_line out true
expect_status 0 in_session 'mise trust /workspace --quiet && mise cache clear && mise prune --yes >/dev/null 2>&1; mise set -g A=b; mise config ls'
check_equal 'nothing came to be in the workspace or beside it' "$(find "$tmp/ws" "$tmp/data" | sort)" "$places"
check_equal 'nor in the home' "$(ls -A "$home" "$home/users/u1")" \
  "$(printf '%s:\n.mise-tools\nbin\nusers\n\n%s/users/u1:\n.mise-tools' "$home" "$home")"
check 'it is in the tree' grep -q experimental "$user/config/config.toml"
expect_system_unchanged

echo '--- two agents of a user install the same, and one is killed'
rm -rf "$tmp/ws/plugin" "$tmp/ws/half"
setsid "$EXEC" sh --policy "$policy" "python3 /user/serve.py stall && mise install '$spec@3.0.0'" >"$tmp/killed" 2>&1 &
killed=$!
test_pids+=("$killed")
check 'one has half of it' wait_for 20 test -e "$tmp/ws/half"
kill -KILL "$killed"
wait "$killed" 2>/dev/null || true
expect_status 0 in_session 'mise ls --installed'
expect_no_match out '^http:served +3\.0\.0'
# mise renews the links of aliases by removing and making them, which another one that does so can meet half done: that is
# its own, on any file system, and is over when it is asked again.
pids=()
for i in 1 2 3; do
  in_session "python3 /user/serve.py
    for try in 1 2 3 4 5 6 7 8; do
      mise install '$spec@3.0.0' && mise exec '$spec@3.0.0' -- served $i && exit
      sleep 0.2
    done
    exit 1" >"$tmp/install.$i" 2>&1 &
  pids+=($!)
done
for i in 1 2 3; do
  if wait "${pids[i - 1]}"; then pass "installer $i"; else fail "installer $i" "$(cat "$tmp/install.$i")"; fi
  check "installer $i has it" grep -qx "served:$i" "$tmp/install.$i"
done
check_equal 'one whole install' "$(cd "$user/installs/http-served/3.0.0" && find . | sort | tr '\n' ' ')" '. ./bin ./bin/served '
check_equal 'of sessions nothing half made' "$(temp_links "$home")" ''
expect_system_unchanged

echo '--- a user without a name'
sed 's|"network"|"process": {"user": 4711}, "network"|' "$policy" >"$tmp/nobody.json"
expect_status 0 "$EXEC" sh --policy "$tmp/nobody.json" --unsetenv USER --unsetenv LOGNAME --setenv HOME=/workspace \
  'id -u; node; mise ls'
expect_line out 4711
expect_line out 'node 22.5.0:'
expect_match out '^http:served +3\.0\.0'
check_equal 'nothing is said' "$err" ''

expect_no_leaks 'nothing is left' "$before"
finish
