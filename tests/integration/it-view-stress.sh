#!/usr/bin/env bash
# fio with verification and the file system stressors of stress-ng, in a view; about a minute. What fails in the view is
# run beside it too: what fails there as well says nothing about us.
. "${STELLA_TEST_LIB:?run this test through meson test}/sh-lib.sh"
preflight root fuse || exit $?
for program in fio stress-ng; do
  command -v "$program" >/dev/null || skip "$program" "it is not installed"
done
[ "$tests_skipped$tests_failed" = 00 ] || finish

before=$(list_leaks)
cd "$tmp"
mkdir ws mnt native
expect_status 0 "$FSGATE" mount --workspace ws mnt
V=$tmp/mnt/workspace
N=$tmp/native
H=$tmp/ws

not_ours=0
# in_view WHAT COMMAND...: with DIR in the environment. When it fails, it is run once more with DIR beside the view. A
# command that could not be run, or took too long, is excused by nothing.
in_view() {
  local what=$1 result=0
  shift
  (DIR=$V "$@") >"$tmp/view.log" 2>&1 || result=$?
  if [ "$result" = 0 ]; then
    pass "$what"
  elif [ "$result" -ge 124 ] || (DIR=$N "$@") >"$tmp/native.log" 2>&1; then
    fail "$what: status $result" "$(tail -n 20 "$tmp/view.log")"
  else
    not_ours=$((not_ours + 1))
    printf 'not ours: %s fails beside the view, too: %s\n' "$what" "$(tail -n 3 "$tmp/native.log")"
  fi
}

echo "--- fio"
# fio_job ARGUMENT...: in $DIR. The same arguments give the same blocks in the same order.
fio_job() {
  timeout -s KILL 60 fio --name=job --directory="$DIR" --size=12m --bsrange=512-64k --verify=crc32c --verify_fatal=1 --randrepeat=1 \
    --allrandrepeat=1 --minimal --eta=never --thread --fallocate=none "$@"
}
fio_run() {
  rm -f "$DIR"/job.*
  fio_job "$@"
}
in_view "random writes" fio_run --rw=randwrite --ioengine=psync --numjobs=2
in_view "sequential writes, synced" fio_run --rw=write --ioengine=psync --fsync=16
in_view "random writes through a mapping" fio_run --rw=randwrite --ioengine=mmap --bsrange=4k-64k
in_view "direct writes" fio_run --rw=randwrite --ioengine=psync --direct=1 --bsrange=4k-64k
in_view "asynchronous direct writes" fio_run --rw=randwrite --ioengine=libaio --iodepth=8 --direct=1 --bsrange=4k-64k
in_view "mixed reads and writes, checked as they go" fio_run --rw=randrw --ioengine=psync --numjobs=2 --verify_backlog=64
in_view "vectored writes" fio_run --rw=randwrite --ioengine=pvsync --numjobs=2 --end_fsync=1

# Written on one side, verified on the other.
across() {
  rm -f "$V"/job.*
  (DIR=$1 fio_job --rw=randwrite --ioengine=psync --do_verify=0) >"$tmp/view.log" 2>&1 || return 1
  (DIR=$2 fio_job --rw=randwrite --ioengine=psync --verify_only=1) >"$tmp/view.log" 2>&1
}
check "written in the view, verified on the host" across "$V" "$H"
check "written on the host, verified in the view" across "$H" "$V"
check_not "a verification that finds another byte fails" sh -c "printf x | dd of=$H/job.0.0 bs=1 seek=4000000 \
  conv=notrunc status=none && fio --name=job --directory=$H --size=12m --bsrange=512-64k --verify=crc32c --verify_fatal=1 \
  --randrepeat=1 --allrandrepeat=1 --rw=randwrite --verify_only=1 --minimal --thread >/dev/null 2>&1"
rm -f "$H"/job.*

echo "--- stress-ng"
# Each group at once, so that they get into each other's way.
groups=(
  "access chmod chown dir dirmany fstat"
  "dentry filename getdent link rename symlink"
  "dirdeep chdir mknod touch utime xattr"
  "fallocate fpunch fsize hdd iomix seek"
  "fcntl flock lockf lockofd lease open"
  "mmap readahead sendfile splice inotify file-ioctl"
)
declare -A options=([mmap]="--mmap-file --mmap-bytes 8m" [hdd]="--hdd-bytes 8m" [iomix]="--iomix-bytes 8m"
  [seek]="--seek-size 4m" [fallocate]="--fallocate-bytes 8m" [readahead]="--readahead-bytes 8m"
  [sendfile]="--sendfile-size 4m")
stress() {
  local name
  local -a arguments=()
  for name; do
    read -ra more <<<"${options[$name]:-}"
    arguments+=("--$name" 1 "${more[@]}")
  done
  timeout -s KILL 60 stress-ng "${arguments[@]}" --timeout 4 --verify --temp-path "$DIR" --no-rand-seed
}
for group in "${groups[@]}"; do
  read -ra names <<<"$group"
  for name in "${names[@]}"; do
    grep -q -- "--$name N" <<<"$(stress-ng --help 2>&1)" || fail "stress-ng has no stressor $name"
  done
  in_view "$group" stress "${names[@]}"
done
check "most of it says something" test "$not_ours" -le 2
check_equal "nothing is left in the view" "$(ls -A "$V")" ''
check_equal "nor on the host" "$(ls -A "$H")" ''

check "the view answers" sh -c "echo after >$V/after && grep -qx after $H/after"
expect_status 0 "$FSGATE" unmount mnt
expect_no_leaks "nothing is left" "$before"
finish
