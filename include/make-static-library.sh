#!/bin/sh
# make-static-library.sh OUTPUT WORK_DIR API_LIBRARY LIBRARY...: one archive with one object, made of all of the first library
# and of what it needs of the others, in which hidden symbols have become local.
set -eu
output=$1
work=$2
api=$3
shift 3
mkdir -p "$work"
ld -r -o "$work/all.o" --whole-archive "$api" --no-whole-archive --start-group "$@" --end-group
objcopy --localize-hidden "$work/all.o"
rm -f "$output"
ar rcs "$output" "$work/all.o"
