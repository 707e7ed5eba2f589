#!/usr/bin/env bash
# Tool trees at work, with a stand-in for mise: sessions prepare them, shims lead through the view to the right tool
# by its name, the system's tree cannot be changed and the user's can, and the links between the two hold inside,
# in a view that is mounted to be looked into, and on the host.
#
# shellcheck disable=SC1091,SC2016,SC2154 # what sh-lib.sh sets; texts that an inner shell expands
. "${STELLA_TEST_LIB:?run this test through meson test}/sh-lib.sh"
. "$STELLA_TEST_LIB/mise-lib.sh"
preflight root fuse userns || exit $?

home=$tmp/home
system=$home/.mise-tools
user=$home/users/u1/.mise-tools
policy=$tmp/policy.json
mkdir -p "$home/bin" "$system/shims" "$tmp/ws" "$tmp/data"
cp "$STELLA_TEST_TOOLS/mise-stand-in" "$home/bin/mise"
add_tool "$system" alpha 1.0 alpha
add_tool "$system" alpha 2.0 alpha
add_tool "$system" beta 7.1 beta
ln -s ./2.0 "$system/installs/alpha/latest"
ln -s ./7.1 "$system/installs/beta/latest"
# as another machine has made them: they lead nowhere here
ln -s /nonexistent/bin/mise "$system/shims/alpha"
ln -s /nonexistent/bin/mise "$system/shims/beta"
write_policy "$policy" "$home" u1
in_session() {
  "$EXEC" sh --policy "$policy" "$@"
}
expect_status 0 "$EXEC" run --workspace "$tmp/ws" -- true
before=$(list_leaks)

echo '--- a session prepares the trees before its first command'
expect_status 0 in_session 'alpha one two; beta'
expect_line out 'alpha 2.0:one two'
expect_line out 'beta 7.1:'
check_equal 'nothing is said' "$err" ''
for name in '' /installs /shims /cache /state /config; do
  check_equal "$name: a directory for its owner only" "$(stat -c '%F %a' "$user$name")" 'directory 700'
done
check_equal "the system's shims are relative" "$(readlink "$system/shims/alpha")" ../../bin/mise
check_equal 'an install is linked' "$(readlink "$user/installs/alpha/1.0")" ../../../../../.mise-tools/installs/alpha/1.0
trees=$(snapshot "$home")
expect_status 0 in_session alpha
expect_unchanged 'a second session finds nothing to do' "$home" "$trees"

echo '--- which tool it is, argv[0] says'
printf '#!/opt/stella/.mise-tools/shims/beta\n' >"$tmp/ws/by-shim"
printf '#!/usr/bin/env alpha\n' >"$tmp/ws/by-env"
printf '#!/opt/stella/bin/mise name\n' >"$tmp/ws/by-mise"
chmod 755 "$tmp/ws"/by-*
expect_status 0 in_session 'alpha by path; /opt/stella/.mise-tools/shims/beta by name; ./by-shim x; ./by-env y; ./by-mise;
  cd /opt/stella/.mise-tools/shims && ./alpha from here
  bash -c "exec -a beta /opt/stella/.mise-tools/shims/alpha renamed"'
expect_line out 'alpha 2.0:by path'
expect_line out 'beta 7.1:by name'
expect_line out 'beta 7.1:./by-shim x'
expect_line out 'alpha 2.0:./by-env y'
expect_line out '/opt/stella/bin/mise'
expect_line out 'alpha 2.0:from here'
expect_line out 'beta 7.1:renamed'
expect_status 0 "$EXEC" run --policy "$policy" -- /opt/stella/.mise-tools/shims/alpha started
expect_line out 'alpha 2.0:started'
expect_status 0 "$EXEC" run --policy "$policy" -- beta started
expect_line out 'beta 7.1:started'
expect_status 0 in_session --setenv MISE_ALPHA_VERSION=1.0 'alpha; mise where'
expect_line out 'alpha 1.0:'
expect_line out /opt/stella
expect_status 127 in_session --setenv MISE_ALPHA_VERSION=9.9 'alpha'
expect_line err 'mise: alpha 9.9 is not installed'

echo "--- the user's come first"
expect_status 0 in_session 'printf %s "$PATH"'
check_equal 'the order of PATH' "$(cut -d: -f1-3 "$out_file")" \
  /opt/stella/users/u1/.mise-tools/shims:/opt/stella/.mise-tools/shims:/opt/stella/bin
expect_status 0 in_session 'set -e; cd "$MISE_DATA_DIR"; mkdir -p installs/alpha/3.0/bin
  printf "#!/bin/sh\necho mine\n" >installs/alpha/3.0/bin/alpha; chmod 755 installs/alpha/3.0/bin/alpha
  ln -sfn ./3.0 installs/alpha/latest; ln -s /opt/stella/bin/mise shims/alpha; alpha'
expect_line out mine
expect_status 0 in_session 'command -v alpha; alpha; command -v beta; beta'
expect_line out /opt/stella/users/u1/.mise-tools/shims/alpha
expect_line out mine
expect_line out /opt/stella/.mise-tools/shims/beta
expect_line out 'beta 7.1:'
check_equal 'its shim was made relative' "$(readlink "$user/shims/alpha")" ../../../../bin/mise
expect_status 0 in_session --unsetenv MISE_DATA_DIR '/opt/stella/.mise-tools/shims/alpha'
expect_line out 'alpha 2.0:'
expect_status 0 in_session --setenv MISE_ALPHA_VERSION=2.0 'alpha'
expect_line out 'alpha 2.0:'

echo "--- the system's tree cannot be changed"
tree=$(snapshot "$system")
bin=$(snapshot "$home/bin")
refused=(
  'echo x >/opt/stella/bin/mise'
  'echo x >/opt/stella/bin/new'
  'echo x >>/opt/stella/.mise-tools/installs/alpha/2.0/bin/alpha'
  'rm /opt/stella/.mise-tools/shims/alpha'
  'ln -sfn /workspace/evil /opt/stella/.mise-tools/shims/alpha'
  'ln -s /workspace/evil /opt/stella/.mise-tools/shims/new'
  'mv /opt/stella/.mise-tools/shims/alpha /opt/stella/.mise-tools/shims/other'
  'mkdir /opt/stella/.mise-tools/installs/gamma'
  'touch /opt/stella/.mise-tools/installs/alpha/2.0'
  'chmod 777 /opt/stella/.mise-tools/installs/alpha/2.0/bin/alpha'
  # through the links of the user's tree
  'echo x >"$MISE_DATA_DIR/installs/alpha/2.0/bin/alpha"'
  'mkdir "$MISE_DATA_DIR/installs/alpha/2.0/lib"'
  'rm "$MISE_DATA_DIR/installs/beta/7.1/bin/beta"'
  # a version that is a path
  'mkdir "$MISE_DATA_DIR/installs/x/../../../../../.mise-tools/installs/gamma"'
  'mkdir -p "$MISE_DATA_DIR/installs/x" && ln -s /workspace "$MISE_DATA_DIR/installs/x/../../../../../.mise-tools/installs/gamma"'
  'mkdir /opt/stella/state' 'mkdir /opt/stella/users/u2' 'echo x >/opt/stella/users/u1/file'
)
for attempt in "${refused[@]}"; do
  run in_session "mkdir -p \"\$MISE_DATA_DIR/installs/x\"; $attempt"
  check_not "refused: $attempt" test "$status" = 0
  expect_match err 'Read-only file system'
done
expect_unchanged 'it is as it was' "$system" "$tree"
expect_unchanged 'so is mise' "$home/bin" "$bin"
check_equal 'nothing else came to be' "$(ls -A "$home" "$home/users/u1")" \
  "$(printf '%s:\n.mise-tools\nbin\nusers\n\n%s/users/u1:\n.mise-tools' "$home" "$home")"
allowed=(
  'echo x >"$MISE_DATA_DIR/state/new"'
  'rm "$MISE_DATA_DIR/shims/alpha" && ln -s ../../../../bin/mise "$MISE_DATA_DIR/shims/alpha"'
  'mkdir "$MISE_DATA_DIR/installs/gamma"'
  'rm "$MISE_DATA_DIR/installs/beta/7.1"'
  'ln -s /workspace "$MISE_DATA_DIR/installs/x/workspace"'
)
for attempt in "${allowed[@]}"; do
  expect_status 0 in_session "$attempt"
done
check "what was allowed is there" test -e "$user/state/new"
expect_status 0 in_session 'beta'
check_equal 'a link that was removed comes again' "$(readlink "$user/installs/beta/7.1")" \
  ../../../../../.mise-tools/installs/beta/7.1

echo '--- links between the trees, in every presentation'
link=users/u1/.mise-tools/installs/alpha/2.0
expect_status 0 in_session "readlink /opt/stella/$link; cat /opt/stella/$link/bin/alpha | wc -l"
expect_line out ../../../../../.mise-tools/installs/alpha/2.0
expect_line out 2
check_equal 'on the host' "$("$home/$link/bin/alpha" here)" 'alpha 2.0:here'
mkdir "$tmp/mnt"
expect_status 0 "$FSGATE" mount --policy "$policy" "$tmp/mnt"
check_equal 'in a mounted view' "$("$tmp/mnt/opt/stella/$link/bin/alpha" there)" 'alpha 2.0:there'
check_equal 'a shim in a mounted view' "$("$tmp/mnt/opt/stella/.mise-tools/shims/beta" there)" 'beta 7.1:there'
check_equal "the user's" "$(MISE_DATA_DIR=$tmp/mnt/opt/stella/users/u1/.mise-tools "$tmp/mnt/opt/stella/users/u1/.mise-tools/shims/alpha")" mine
target=$(readlink "$tmp/mnt/opt/stella/$link")
check_equal 'its text leads nowhere else' "$(realpath "$tmp/mnt/opt/stella/$link")" \
  "$tmp/mnt/opt/stella/.mise-tools/installs/alpha/2.0"
case $target in
"$tmp/mnt/"* | [!/.]*) pass "and cannot climb: $target" ;;
*) fail 'a text that could climb out' "$target" ;;
esac
run sh -c 'echo x >"$1/opt/stella/.mise-tools/shims/new"' sh "$tmp/mnt"
expect_match err 'Read-only file system'
check 'a look in it is allowed to write to the user tree' touch "$tmp/mnt/opt/stella/users/u1/.mise-tools/cache/seen"
check 'which is there on the host' test -e "$user/cache/seen"
expect_status 0 "$FSGATE" unmount "$tmp/mnt"
expect_status 0 "$FSGATE" mount --policy "$policy" --links original "$tmp/mnt"
check_equal 'original texts' "$(readlink "$tmp/mnt/opt/stella/$link")" ../../../../../.mise-tools/installs/alpha/2.0
check_equal 'hold too' "$("$tmp/mnt/opt/stella/$link/bin/alpha")" 'alpha 2.0:'
expect_status 0 "$FSGATE" unmount "$tmp/mnt"

echo "--- a tree that is the user's data"
expect_status 0 in_session 'mkdir -p /user/.mise-tools/installs/alpha && cd /user/.mise-tools/installs/alpha &&
  ln -s ../../../../opt/stella/.mise-tools/installs/alpha/1.0 one && ln -s ../../../../etc/passwd passwd && ln -s /opt/stella/bin/mise mise &&
  MISE_DATA_DIR=/user/.mise-tools MISE_ALPHA_VERSION=one alpha && readlink one && ./mise where'
check_equal 'its links into the other mount work' "$out" \
  "$(printf 'alpha 1.0:\n../../../../opt/stella/.mise-tools/installs/alpha/1.0\n/opt/stella')"
expect_status 0 "$FSGATE" mount --policy "$policy" "$tmp/mnt"
check_equal 'and in a mounted view' "$("$tmp/mnt/user/.mise-tools/installs/alpha/one/bin/alpha")" 'alpha 1.0:'
check_equal 'an absolute one is the one of the view' "$("$tmp/mnt/user/.mise-tools/installs/alpha/mise" where)" "$tmp/mnt/opt/stella"
run cat "$tmp/mnt/user/.mise-tools/installs/alpha/passwd"
check_not 'one that leaves the view does not' test "$status" = 0
expect_match err 'Permission denied'
expect_status 0 "$FSGATE" unmount "$tmp/mnt"
check_not 'on the host they lead nowhere' test -e "$tmp/data/.mise-tools/installs/alpha/one"
rm -rf "$tmp/data/.mise-tools"

echo '--- what one user has, another has not'
write_policy "$tmp/other.json" "$home" u2
expect_status 0 "$EXEC" sh --policy "$tmp/other.json" 'alpha; ls /opt/stella/users'
expect_line out 'alpha 2.0:'
expect_line out u2
expect_no_match out u1
mine=$(snapshot "$user")
run "$EXEC" sh --policy "$tmp/other.json" 'echo x >"$MISE_DATA_DIR/../../u1/.mise-tools/x"'
check_not "the other's tree is out of reach" test "$status" = 0
expect_unchanged 'and as it was' "$user" "$mine"

echo "--- the caller's own mise is not the command's"
caller=(MISE_TRUSTED_CONFIG_PATHS=/ MISE_CONFIG_DIR=/root/secret MISE_GLOBAL_CONFIG_FILE=/root/secret/c MISE_YES=1
  MISE_DATA_DIR=/root/secret/data MISE_GITHUB_TOKEN=secret GITHUB_TOKEN=secret GITLAB_TOKEN=secret MISE_ALPHA_VERSION=1.0
  MISE_ENV=secret __MISE_SESSION=secret __MISE_DIFF=secret NPM_TOKEN=secret)
sed 's|"env": {|"inherit_env": true, "env": {|' "$policy" >"$tmp/inherit.json"
for file in "$policy" "$tmp/inherit.json"; do
  expect_status 0 env "${caller[@]}" "$EXEC" sh --policy "$file" 'env | grep -E "MISE|TOKEN|secret" | cut -d= -f1 | sort; alpha'
  check_equal "${file##*/}: exactly the declared ones are there" "$out" \
    "$(printf 'MISE_%s_DIR\n' CACHE CONFIG DATA STATE SYSTEM_CONFIG; echo mine)"
done
expect_status 0 in_session --setenv MISE_ALPHA_VERSION=1.0 --setenv GITHUB_TOKEN=given 'alpha; echo "$GITHUB_TOKEN"'
check_equal 'what is asked for is' "$out" "$(printf 'alpha 1.0:\ngiven')"

echo '--- an agent that owns its tree'
mkdir "$tmp/outside"
echo kept >"$tmp/outside/alpha"
outside=$(snapshot "$tmp/outside")
expect_status 0 in_session "cd \"\$MISE_DATA_DIR\" && rm -rf shims installs state && ln -s $tmp/outside shims && ln -s /etc installs &&
  ln -s ../../../../../../../../../../../../..$tmp/outside state && chmod 777 cache"
tree=$(snapshot "$system")
expect_status 0 in_session 'command -v alpha; alpha; test ! -L "$MISE_DATA_DIR/shims"'
expect_line out /opt/stella/.mise-tools/shims/alpha
expect_line out 'alpha 2.0:'
expect_unchanged 'nothing outside has changed' "$tmp/outside" "$outside"
expect_unchanged "nor the system's tree" "$system" "$tree"
check_equal 'its directories are its own again' "$(stat -c '%F %a' "$user/shims" "$user/state" "$user/cache" | sort -u)" 'directory 700'
# programs that we ourselves use, and mise, under the agent's own names
expect_status 0 in_session 'for name in sh bash env mise stella-exec stella-fsgate stella-sandbox-init fusermount3 mount; do
  printf "#!/bin/sh\ntouch $MISE_DATA_DIR/marker /workspace/marker\n" >"$MISE_DATA_DIR/shims/$name"; chmod 755 "$MISE_DATA_DIR/shims/$name"
done'
expect_status 0 "$EXEC" run --policy "$policy" -- /bin/true
expect_status 0 "$EXEC" run --policy "$policy" -- /opt/stella/.mise-tools/shims/beta
expect_line out 'beta 7.1:'
check 'none of them was run' test ! -e "$user/marker" -a ! -e "$tmp/ws/marker"
# another agent of the same user is exposed to them, for it finds them first; what is asked for by its path is the system's
expect_status 0 "$EXEC" run --policy "$policy" -- mise
check 'unless a command asks for them' test -e "$user/marker"
rm "$tmp/ws/marker"

echo '--- what cannot be written is no reason not to run'
ln -sfn /nonexistent/bin/mise "$system/shims/beta"
mount --bind "$home" "$home"
mount -o remount,bind,ro "$home"
expect_status 0 "$EXEC" run --policy "$policy" --log-format json -- alpha
expect_line out 'alpha 2.0:'
expect_match err '"event":"sandbox.tools_unprepared".*"reason":"Read-only file system'
check_equal 'the link is as it was' "$(readlink "$system/shims/beta")" /nonexistent/bin/mise
umount "$home"
expect_status 0 "$EXEC" run --policy "$policy" --log-format json -- beta
expect_line out 'beta 7.1:'
expect_no_match err tools_unprepared

echo '--- what is no tool tree is not made one'
sed "s|$user|$tmp/outside|" "$policy" >"$tmp/bad.json"
expect_status 125 "$EXEC" run --policy "$tmp/bad.json" -- true
expect_match err 'user_tools_dir'
expect_unchanged 'it is as it was' "$tmp/outside" "$outside"

echo '--- many sessions at once, on a tree that is not there yet'
write_policy "$tmp/many.json" "$home" u3
for shim in alpha beta; do ln -sfn /nonexistent/bin/mise "$system/shims/$shim"; done
pids=()
for i in 1 2 3 4 5 6; do
  "$EXEC" sh --policy "$tmp/many.json" 'alpha && beta' >"$tmp/many.$i" 2>&1 &
  pids+=($!)
done
for pid in "${pids[@]}"; do
  check "session of process $pid" wait "$pid"
done
check_equal 'each found its tools' "$(cat "$tmp"/many.[1-6] | sort | uniq -c | tr -s ' ')" "$(printf ' 6 alpha 2.0:\n 6 beta 7.1:')"
check_equal 'nothing half made' "$(temp_links "$system" "$home/users/u3")" ''
check_equal 'one complete tree' "$(ls "$home/users/u3/.mise-tools" "$home/users/u3/.mise-tools/installs/alpha" | tr '\n' ' ')" \
  "$home/users/u3/.mise-tools: cache config installs shims state  $home/users/u3/.mise-tools/installs/alpha: 1.0 2.0 latest "

echo '--- every backend'
# a new user's tree for each, and stale shims: it is a session that prepares them, whatever runs its commands
sed 's|"network": {"mode": "disabled"},||' "$policy" >"$tmp/open.json"
for backend in fsgate bwrap none; do
  if [ "$backend" = bwrap ] && ! command -v bwrap >/dev/null; then
    skip "$backend" 'it is not installed'
    continue
  fi
  ln -sfn /nonexistent/bin/mise "$system/shims/beta"
  sed "s|/u1/|/$backend/|g" "$tmp/open.json" >"$tmp/$backend.json"
  expect_status 0 "$EXEC" sh --policy "$tmp/$backend.json" --backend "$backend" 'alpha on; beta on; touch "$MISE_DATA_DIR/state/mine"; command -v beta'
  expect_line out 'alpha 2.0:on'
  expect_line out 'beta 7.1:on'
  check "$backend: the user's tree is made and written to" test -e "$home/users/$backend/.mise-tools/state/mine"
  check_equal "$backend: the shims are relative" "$(readlink "$system/shims/beta")" ../../bin/mise
  [ "$backend" = none ] && continue # which keeps nobody from anything
  expect_line out /opt/stella/.mise-tools/shims/beta
  tree=$(snapshot "$system")
  run "$EXEC" sh --policy "$tmp/$backend.json" --backend "$backend" 'echo x >/opt/stella/.mise-tools/shims/new'
  expect_match err 'Read-only file system'
  expect_unchanged "$backend: the system's tree is as it was" "$system" "$tree"
done

echo '--- links are denied'
sed 's|"mounts"|"symlinks": "deny", "mounts"|' "$policy" >"$tmp/deny.json"
run "$EXEC" run --policy "$tmp/deny.json" -- /opt/stella/.mise-tools/shims/beta
check_not 'then shims are no programs' test "$status" = 0
expect_status 0 "$EXEC" run --policy "$tmp/deny.json" -- /opt/stella/bin/mise where
expect_line out /opt/stella

echo '--- an ordinary user'
USER_ID=1234
mkdir -p "$home/users/u4" "$tmp/theirs" "$tmp/ws4"
chmod 711 "$home/users"
chown $USER_ID "$home/users/u4" "$tmp/theirs" "$tmp/ws4"
sed "s|/u1/|/u4/|g; s|\"$tmp/ws\"|\"$tmp/ws4\"|g; s|$tmp/data|$tmp/theirs|" "$policy" >"$tmp/user.json"
ln -sfn /nonexistent/bin/mise "$system/shims/beta"
as_them() {
  STELLA_STATE_DIR=$tmp/theirs/state as-user --home "$tmp/theirs" $USER_ID -- "$EXEC" "$@"
}
expect_status 0 as_them run --policy "$tmp/user.json" --log-format json -- sh -c 'alpha; touch "$MISE_DATA_DIR/state/mine"
  echo x >/opt/stella/bin/x || echo refused'
expect_line out 'alpha 2.0:'
expect_line out refused
expect_match err '"event":"sandbox.tools_unprepared".*"reason":"Permission denied'
expect_match err 'Read-only file system'
check_equal 'what it made is theirs' "$(stat -c %u "$home/users/u4/.mise-tools" "$home/users/u4/.mise-tools/state/mine" | sort -u)" $USER_ID

rm -rf "$tmp/theirs/state"
expect_no_leaks 'nothing is left' "$before"
finish
