#!/usr/bin/env bash
# Each system call of the set-up of a run fails once: the command is not run, the stage is named, nothing is left.
# All calls of the processes in the namespaces, and some of the supervisor's and the gateway's; with
# STELLA_TEST_FULL=1 all of those too, with several errnos, which takes half an hour.
. "${STELLA_TEST_LIB:?run this test through meson test}/sh-lib.sh"
preflight root fuse || exit $?
without_bwrap

mkdir "$tmp/ws" "$tmp/tmp"
export TMPDIR=$tmp/tmp
list_leaks >/dev/null # shows the FUSE connections from now on
seed=${STELLA_TEST_SEED:-$((RANDOM % 1000))}
echo "seed $seed"

# sweep WHAT ROLES ERRNOS STRIDE [RUN-OPTION...]
sweep() {
  local what=$1 options=() word
  for word in $2; do options+=(--role "$word"); done
  for word in $3; do options+=(--errno "$word"); done
  options+=(--stride "$4" --seed "$seed")
  [ -z "${STELLA_TEST_VERBOSE:-}" ] || options+=(--verbose)
  shift 4
  check "$what" fault-sweep "${options[@]}" --marker "$tmp/ws/ran" --fail-nth "$STELLA_TEST_TOOLS/fail-nth" \
    --stages "$STELLA_TEST_LIB/../../executor/README.md" -- \
    "$EXEC" run --json --timeout 5s --workspace "$tmp/ws" "$@" -- /bin/sh -c 'touch /workspace/ran'
}

limited=(--no-network --limit cpu_seconds=100 --limit open_files=512)
inside='init-start init exec-init child'
outside='supervisor gateway-start gateway'
if [ -n "${STELLA_TEST_FULL:-}" ]; then
  errnos=${STELLA_TEST_ERRNOS:-EPERM EINTR ENOMEM EMFILE EINVAL ENOENT}
  sweep "every call" "${STELLA_TEST_ROLES:-$inside $outside}" "$errnos" 1 "${limited[@]}"
  sweep "every call of the command's set-up with the host's network" child "$errnos" 1
else
  sweep "every call of the command's set-up" "exec-init child" "EPERM" 1 "${limited[@]}"
  sweep "every call of that with the host's network" child "ENOMEM" 1
  sweep "calls of the session's set-up" "init-start init" "EPERM" 5 "${limited[@]}"
  sweep "calls of the supervisor and the gateway" "$outside" "EPERM" 25 "${limited[@]}"
fi
finish
