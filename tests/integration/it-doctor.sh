#!/usr/bin/env bash
# A host that lacks something: `run` refuses with one line, runs nothing and leaves nothing; `doctor` says the
# same in the same words, names what is missing, and leaves nothing either. Each lack has its allowed twin, without
# which these tests would pass where nothing works at all.
#
# shellcheck disable=SC1091,SC2016,SC2034,SC2154 # what sh-lib.sh sets and reads; texts that an inner shell expands
. "${STELLA_TEST_LIB:?run this test through meson test}/sh-lib.sh"
preflight root fuse userns || exit $?
without_bwrap

USER_ID=1 # daemon: fusermount3 wants a user that has a name
home=$tmp/home
mkdir "$tmp/ws" "$home" "$home/ws" "$tmp/layers"
chown -R $USER_ID:$USER_ID "$home"
mount -t tmpfs none "$tmp/layers"
INIT=$STELLA_TEST_BUILD/executor/stella-sandbox-init
as_user() {
  as-user --home "$home" $USER_ID -- "$@"
}

# overlay DIR: what is changed below DIR from now on is changed for this process and its children alone.
cat >"$tmp/overlay" <<'END'
dir=$1 layers=$(mktemp -d -p "$LAYERS")
mkdir "$layers/upper" "$layers/work"
mount -t overlay -o "lowerdir=$dir,upperdir=$layers/upper,workdir=$layers/work" overlay "$dir"
rm -f "$dir/bwrap" # see without_bwrap
END
export LAYERS=$tmp/layers OVERLAY=$tmp/overlay FSGATE EXEC INIT
# changed 'SHELL COMMANDS' COMMAND...: runs it in a mount namespace where these have been run.
changed() {
  local script=$1
  shift
  unshare -m --propagation private bash -ec "$script"$'\nexec "$@"' sh "$@"
}
patch_version() { # PROGRAM: the same in another version
  printf 'sed "s/%s/9.9.9/g" <"$%s" >"$LAYERS/patched"; bash "$OVERLAY" "${%s%%/*}"; cp "$LAYERS/patched" "$%s"' \
    "$version" "$1" "$1" "$1"
}
version=$("$EXEC" --version)
version=${version#stella-exec }

# FUSE connections are of the whole machine, and looked at once at the end: what else a session makes is enough
# to tell whether one is left.
connections_too=$(declare -f list_leaks)
eval "${connections_too/list_leaks/list_all_leaks}"
list_leaks() { list_all_leaks | grep -v '^connection ' || true; }

# A session's own names differ each time.
same_words() {
  sed -E 's/sandbox-[0-9a-f]{16}/sandbox-ID/g'
}

# works WHAT WORKSPACE COMMAND-PREFIX...: the twin.
works() {
  local what=$1 ws=$2
  shift 2
  rm -f "$ws/ran"
  expect_status 0 "$@" "$EXEC" run --workspace "$ws" -- touch ran
  check "$what: the command was run" test -e "$ws/ran"
  expect_status 0 "$@" "$EXEC" doctor
  check_equal "$what: doctor's last line" "$(tail -n 1 "$out_file")" 'run works'
  check_equal "$what: nothing on stderr" "$err" ''
  expect_no_match out '^missing'
  rm -f "$ws/ran"
}

# missing WHAT PATTERN LINE WORKSPACE COMMAND-PREFIX...: PATTERN is of what run says, LINE of the line of doctor
# that names the cause.
missing() {
  local what=$1 pattern=$2 line=$3 ws=$4 said
  shift 4
  echo "--- $what"
  expect_status 125 "$@" "$EXEC" run --workspace "$ws" -- sh -c 'touch ran; echo ran'
  expect_one_line err
  expect_match err "^stella-exec: $pattern"
  check_equal "$what: nothing is run" "$out" ''
  check_not "$what: nor has it left anything" test -e "$ws/ran"
  said=$(same_words <"$err_file")
  expect_no_leaks "$what: nothing is left by run" "$before"
  expect_status 1 "$@" timeout -s KILL 100 "$EXEC" doctor
  check_equal "$what: run and doctor agree" "stella-exec: $(tail -n 1 "$out_file" | same_words | sed 's/^run does not work: //')" "$said"
  expect_match out "^$line"
  check_equal "$what: doctor says nothing on stderr" "$err" ''
  expect_no_leaks "$what: nothing is left by doctor" "$before"
}

expect_status 0 "$EXEC" run --workspace "$tmp/ws" -- true
before_all=$(list_all_leaks)
before=$(list_leaks)
ws=$tmp/ws
works 'root' "$ws"
expect_match out '^ok       kernel passthrough|^degraded kernel passthrough: '
STELLA_STATE_DIR=$home/state works 'a user' "$home/ws" as_user
expect_match out '^degraded kernel passthrough: for root only; .*; run as root$'

echo '--- the report'
expect_status 0 "$EXEC" doctor --json
expect_one_line out
cp "$out_file" "$tmp/report"
expect_status 0 python3 - "$tmp/report" <<'END'
import json, sys
report = json.load(open(sys.argv[1]))
assert list(report) == ["version", "run_works", "reason", "remedy", "program_version", "capabilities"], list(report)
assert report["version"] == 1 and report["run_works"] is True and report["reason"] is None
names = [c["name"] for c in report["capabilities"]]
assert len(set(names)) == len(names)
for name in ("kernel", "programs", "state-dir", "user-namespaces", "network-namespaces", "fuse-device", "fuse-mount",
             "fusermount3", "mount-calls", "proc", "pivot-root", "seccomp", "own-user", "groups", "abstract-sockets",
             "openat2", "passthrough", "memory-cgroup", "pids-cgroup"):
    assert name in names, name
for c in report["capabilities"]:
    assert list(c) == ["name", "state", "found", "errno", "cost", "remedy"], c
    assert c["state"] in ("ok", "degraded", "missing", "unknown"), c
    assert (c["cost"] is not None) == (c["state"] in ("degraded", "missing")), c
END
expect_status 125 "$EXEC" doctor --nope
expect_one_line err
expect_status 125 "$EXEC" doctor more
expect_one_line err
expect_status 125 sh -c '"$1" doctor >/dev/full' sh "$EXEC"
expect_line err 'stella-exec: standard output: No space left on device'

echo '--- the device of FUSE'
dev='mount -t tmpfs -o mode=755 none /dev && cd /dev && umask 0 && mknod null c 1 3 && mknod zero c 1 5 &&
  mknod full c 1 7 && mknod random c 1 8 && mknod urandom c 1 9 && mknod tty c 5 0'
works 'its own node' "$ws" changed "$dev && mknod -m 666 fuse c 10 229"
missing 'no /dev/fuse' 'cannot open /dev/fuse: No such file .*modprobe fuse' 'missing  FUSE device: .*\(ENOENT\); run needs it; .*modprobe fuse' \
  "$ws" changed "$dev"
missing 'another device there' 'cannot open /dev/fuse: No such device .*10:229' 'missing  FUSE device: .*\(ENODEV\).*10:229' \
  "$ws" changed "$dev && mknod -m 666 fuse c 1 3"
mkdir -m 700 "$tmp/other" "$tmp/other/ws"
chown -R 4321:4321 "$tmp/other"
other=(setpriv --reuid 4321 --regid 4321 --clear-groups env "STELLA_STATE_DIR=$tmp/other/state")
STELLA_STATE_DIR=$tmp/other/state works 'a device for all' "$tmp/other/ws" changed "$dev && mknod -m 666 fuse c 10 229" "${other[@]}"
STELLA_STATE_DIR=$tmp/other/state missing 'a device for root alone' 'cannot open /dev/fuse: Permission denied .*chmod 0666 /dev/fuse' \
  'missing  FUSE device: .*\(EACCES\); run needs it; .*chmod 0666 /dev/fuse' \
  "$tmp/other/ws" changed "$dev && mknod -m 600 fuse c 10 229" "${other[@]}"

expect_status 125 changed "$dev" "$EXEC" run --json --workspace "$ws" -- touch ran
expect_one_line out
expect_match out '"ended": "start_failed", .*"code": "host-unsupported", "stage": "fuse-device", "errno": "ENOENT", .*"hint": "load FUSE'
check_not 'nothing was run' test -e "$ws/ran"
expect_status 1 changed "$dev" "$EXEC" doctor --json
expect_one_line out
expect_match out '"run_works": false, "reason": "cannot open /dev/fuse: No such file or directory", "remedy": "load FUSE'
expect_match out '"name": "fuse-device", "state": "missing", "found": "[^"]*", "errno": "ENOENT", "cost": "run needs it", "remedy": "load FUSE'
expect_match out '"name": "fuse-mount", "state": "unknown", .*"cost": null, "remedy": null'

echo '--- groups that stay'
run changed "$dev && mknod -m 666 fuse c 10 229" setpriv --reuid 4321 --regid 4321 --groups 4321,54321 \
  env STELLA_STATE_DIR="$tmp/other/state" "$EXEC" doctor
check_equal 'run works with them' "$status" 0
expect_match out '^degraded supplementary groups: commands keep 54321; .*setpriv --clear-groups'
expect_status 0 setpriv --groups 54321 "$EXEC" doctor
expect_match out '^ok       supplementary groups: commands have none$'

echo '--- limits without a cgroup'
no_cgroups='mount -t tmpfs none /sys/fs/cgroup'
unlimited=(deny-syscall prlimit64,setrlimit EPERM -- as-user --home "$home" "$USER_ID" --)
# by_rlimit WORKSPACE COMMAND-PREFIX...: what doctor says of each limit, run does.
by_rlimit() {
  local ws=$1
  shift
  expect_status 0 changed "$no_cgroups" "$@" "$EXEC" doctor
  expect_match out "^degraded process limit by cgroup: .*; a session's processes are limited by RLIMIT_NPROC instead"
  expect_match out "^degraded memory limit by cgroup: .*; a session's memory cannot be limited"
  expect_status 0 changed "$no_cgroups" "$@" "$EXEC" run --workspace "$ws" --limit processes=20 --limit required=true -- true
  expect_status 125 changed "$no_cgroups" "$@" "$EXEC" run --workspace "$ws" --limit memory_bytes=1G --limit required=true -- \
    touch ran
  check_not 'what cannot be limited is not run' test -e "$ws/ran"
}
by_rlimit "$ws"
STELLA_STATE_DIR=$home/state by_rlimit "$home/ws" as-user --home "$home" $USER_ID --
# a sanitizer's runtime sets a limit of its own, and ends the program when it cannot
if ! sanitized "$EXEC"; then
  STELLA_STATE_DIR=$home/state run changed "$no_cgroups" "${unlimited[@]}" "$EXEC" doctor
  expect_match out "^degraded process limit by cgroup: .*; a session's processes cannot be limited"
  STELLA_STATE_DIR=$home/state run changed "$no_cgroups" "${unlimited[@]}" "$EXEC" doctor --json
  expect_match out '"name": "pids-cgroup", "state": "degraded", .*"cost": "a session.s processes cannot be limited", '
fi

echo '--- namespaces'
outer='[ "$(cat /proc/sys/user/max_user_namespaces)" = 0 ] || echo "$0" >/proc/sys/user/max_user_namespaces; exec "$@"'
works 'inside a user namespace' "$ws" unshare -Ur sh -c "$outer" 1000
missing 'no user namespaces' 'cannot make the sandbox.s namespaces: .*sysctl -w user.max_user_namespaces' \
  'missing  user namespaces: .*\(ENOSPC\); run needs it; .*sysctl -w user.max_user_namespaces' \
  "$ws" unshare -Ur sh -c "$outer" 0
STELLA_STATE_DIR=$home/state missing 'nor for a user' 'cannot make the sandbox.s namespaces: .*sysctl -w user.max_user_namespaces' \
  'missing  user namespaces: .*\(ENOSPC\)' "$home/ws" as_user unshare -Ur sh -c "$outer" 0
run unshare -Ur sh -c 'echo 0 >/proc/sys/user/max_net_namespaces; exec "$@"' sh "$EXEC" doctor
check_equal 'without network namespaces run works' "$status" 0
expect_match out '^missing  network namespaces: .*\(ENOSPC\); run --no-network needs them; .*user.max_'

echo '--- system calls that a container refuses'
for errnum in EPERM ENOSYS; do
  missing "clone3: $errnum" 'cannot make the sandbox.s namespaces: .*clone3' 'missing  user namespaces: .*clone3' "$ws" deny-syscall clone3 $errnum --
  missing "mount: $errnum" 'cannot make the sandbox.s mounts private: .*seccomp=unconfined' \
    "missing  user namespaces: .*\($errnum\).*seccomp=unconfined" "$ws" deny-syscall mount $errnum --
  for call in open_tree mount_setattr move_mount fsopen; do
    missing "$call: $errnum" 'cannot .*seccomp=unconfined' "missing  mount calls by fd: .*\($errnum\).*seccomp=unconfined" \
      "$ws" deny-syscall $call $errnum --
  done
  missing "pivot_root: $errnum" 'cannot make the view the root: .*pivot_root' "missing  pivot_root: .*\($errnum\).*pivot_root" \
    "$ws" deny-syscall pivot_root $errnum --
  works "openat2: $errnum" "$ws" deny-syscall openat2 $errnum --
  expect_match out "^degraded openat2: .*\($errnum\); .*slower"
  missing "unshare: $errnum" 'cannot make the sandbox.s cgroup namespace: .*user namespaces' \
    "missing  user namespaces: cannot make the sandbox's cgroup namespace: .*\($errnum\)" "$ws" deny-syscall unshare $errnum --
  works "pidfd_open: $errnum" "$ws" deny-syscall pidfd_open $errnum --
done
missing 'no seccomp' 'cannot .*seccomp filter: .*CONFIG_SECCOMP_FILTER' 'missing  seccomp filter: .*CONFIG_SECCOMP_FILTER' \
  "$ws" deny-syscall seccomp,prctl:0=22 EINVAL --
works 'no Landlock' "$ws" deny-syscall landlock_create_ruleset ENOSYS --
expect_match out '^degraded abstract sockets shut off: .*abstract unix sockets.*6\.12'

echo '--- fusermount3'
# Of all new mounts, only that of FUSE sets a flag (FSCONFIG_SET_FLAG is 0).
no_fuse=(deny-syscall fsconfig:1=0 EPERM -- as-user --home "$home" "$USER_ID" --)
fusermount=$(readlink -f "$(command -v fusermount3)")
export FUSERMOUNT=$fusermount
drop='bash "$OVERLAY" "${FUSERMOUNT%/*}"; rm "$FUSERMOUNT"'
export STELLA_STATE_DIR=$home/state
works 'instead of a mount in the user namespace' "$home/ws" "${no_fuse[@]}"
expect_match out '^degraded FUSE mount in a user namespace: .*\(EPERM\)'
works 'not needed with one' "$home/ws" changed "$drop" as-user --home "$home" $USER_ID --
expect_match out '^degraded fusermount3: .*\(ENOENT\); stella-fsgate mount needs it.*install fusermount3'
missing 'neither' 'cannot mount the view .*no fusermount3 \(install fusermount3' 'degraded fusermount3: .*install fusermount3' \
  "$home/ws" changed "$drop" "${no_fuse[@]}"
missing 'not set-user-ID' '.*fusermount3: mount failed: .*set-user-ID root' 'degraded fusermount3: .*set-user-ID root' \
  "$home/ws" changed 'bash "$OVERLAY" "${FUSERMOUNT%/*}"; chmod 755 "$FUSERMOUNT"' "${no_fuse[@]}"
export STELLA_STATE_DIR=$tmp/state
missing 'root has no other way' 'cannot mount the view in a user namespace: ' 'missing  FUSE mount in a user namespace: .*\(EPERM\)' \
  "$ws" deny-syscall fsconfig:1=0 EPERM --

echo '--- a /proc that is partly hidden, as in a container'
container=(unshare -Urmpf --mount-proc --kill-child=KILL)
works 'a container with all of /proc' "$ws" "${container[@]}"
missing 'with some of it hidden' 'cannot mount the session.s /proc: .*systempaths=unconfined' \
  'missing  /proc of its own: .*\(EPERM\); run needs it; .*systempaths=unconfined' \
  "$ws" "${container[@]}" sh -c 'mount -t tmpfs none /proc/fs && exec "$@"' sh

echo '--- programs'
missing 'no gateway' 'cannot start .*stella-fsgate.*No such file .*installed' 'missing  programs: .*stella-fsgate: .*\(ENOENT\)' \
  "$ws" changed 'bash "$OVERLAY" "${FSGATE%/*}"; rm "$FSGATE"'
missing 'no init' 'cannot start stella-sandbox-init: No such file .*installed' 'missing  programs: .*stella-sandbox-init: .*\(ENOENT\)' \
  "$ws" changed 'bash "$OVERLAY" "${INIT%/*}"; rm "$INIT"'
missing 'a gateway of another version' ".*the executor is version $version, the gateway 9\.9\.9; install both from one build" \
  "missing  programs: .*stella-fsgate says 'stella-fsgate 9\.9\.9', .*one build" "$ws" changed "$(patch_version FSGATE)"
missing 'an init of another version' 'stella-sandbox-init is of another version .*one build' \
  "missing  programs: .*stella-sandbox-init says 'stella-sandbox-init 9\.9\.9', .*one build" "$ws" changed "$(patch_version INIT)"

echo '--- the state directory'
echo file >"$tmp/file"
STELLA_STATE_DIR=$tmp/file missing 'a file' 'state directory .*STELLA_STATE_DIR' 'missing  state directory: .*STELLA_STATE_DIR' "$ws"
STELLA_STATE_DIR=state missing 'not absolute' 'state directory "state": .*absolute path' 'missing  state directory: .*absolute path' "$ws"
check_not 'nothing was made there' test -e state

echo '--- a gateway that hangs'
hang='bash "$OVERLAY" "${FSGATE%/*}"; rm "$FSGATE"; cp "$(readlink -f "$(command -v sleep)")" "$FSGATE.sleep"
  printf "#!/bin/sh\nexec \"%s\" 1000\n" "$FSGATE.sleep" >"$FSGATE"; chmod 755 "$FSGATE"'
started=$SECONDS
expect_status 1 changed "$hang" timeout -s KILL 100 "$EXEC" doctor
check "doctor is bounded: $((SECONDS - started)) s" test $((SECONDS - started)) -lt 60
expect_match out '^missing  programs: '
expect_match out '^run does not work: the gateway was not ready within 15 s'
expect_no_leaks 'and has left nothing' "$before"
check_not 'nor is what hung still there' pgrep -f stella-fsgate.sleep

eval "$connections_too"
expect_no_leaks 'nothing is left of all this' "$before_all"
umount "$tmp/layers"
finish
