#!/usr/bin/env bash
# Locks of real programs: flock(1), python, sqlite; in commands of a sandbox and in a mounted view, against each other
# and against the same programs beside the view.
. "${STELLA_TEST_LIB:?run this test through meson test}/sh-lib.sh"
preflight root fuse || exit $?
for program in flock python3 sqlite3; do
  command -v "$program" >/dev/null || skip "$program" "it is not installed"
done

expect_status 0 "$EXEC" run --workspace "$tmp" -- true
before=$(list_leaks)
cd "$tmp"
mkdir ws mnt
V=$tmp/mnt/workspace

# Takes a lock, says so in a file, and keeps it until there is another one.
cat >ws/hold.py <<'END'
import fcntl, os, sys, time
kind, mode, name = sys.argv[1:]
fd = os.open(name, os.O_RDWR)
getattr(fcntl, kind)(fd, fcntl.LOCK_EX if mode == "exclusive" else fcntl.LOCK_SH)
open(name + ".held", "w").close()
while not os.path.exists(name + ".enough"):
    time.sleep(0.02)
END
# Whether a lock can be had: 0, or 11 (EAGAIN).
cat >ws/try.py <<'END'
import fcntl, os, sys
kind, mode, name = sys.argv[1:]
fd = os.open(name, os.O_RDWR)
try:
    getattr(fcntl, kind)(fd, fcntl.LOCK_NB | (fcntl.LOCK_EX if mode == "exclusive" else fcntl.LOCK_SH))
except OSError as error:
    sys.exit(error.errno)
END
# The process that F_GETLK names.
cat >ws/who.py <<'END'
import fcntl, os, struct, sys
lock = fcntl.fcntl(os.open(sys.argv[1], os.O_RDWR), fcntl.F_GETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 0, 0))
print(*struct.unpack("hhqqi4x", lock)[::4])
END

not_free() { ! flock -n "$1" true; }
beside() (cd ws && exec "$@")
sandboxed() { "$EXEC" run --quiet --workspace "$tmp/ws" -- "$@"; }

echo "--- a command in a sandbox, and the host"
for kind in flock lockf; do
  for sides in 'sandboxed beside' 'beside sandboxed' 'sandboxed sandboxed'; do
    read -r holder other <<<"$sides"
    rm -f ws/f*
    touch ws/f
    background "$holder" python3 hold.py "$kind" shared f
    wait_for 10 test -e ws/f.held
    expect_status 0 "$other" python3 try.py "$kind" shared f
    expect_status 11 "$other" python3 try.py "$kind" exclusive f
    if [ "$kind" = lockf ]; then
      # F_RDLCK; of a process beside the sandbox no more is told than that there is one
      who=$("$other" python3 who.py f)
      [ "$sides" != 'beside sandboxed' ] || check_equal "who holds it is not told to a sandbox" "$who" '0 0'
      [ "$sides" != 'sandboxed beside' ] || check_equal "nor one in it to the host" "$who" '0 -1'
    fi
    touch ws/f.enough
    wait "$background_pid"
    expect_status 0 "$other" python3 try.py "$kind" exclusive f
  done
done

echo "--- what a killed command leaves"
rm -f ws/f*
touch ws/f
background "$EXEC" run --quiet --workspace "$tmp/ws" -- python3 hold.py flock exclusive f
wait_for 10 test -e ws/f.held
expect_status 11 beside python3 try.py flock exclusive f
kill -KILL "$background_pid"
wait "$background_pid" 2>/dev/null || true
check "a killed session leaves no lock" wait_for 5 beside python3 try.py flock exclusive f

expect_status 0 sandboxed true # removes what that one could not

echo "--- a lock that a program was started with"
expect_status 0 "$FSGATE" mount --workspace ws "$tmp/mnt"
touch ws/started
# the shell that takes it becomes another program, which does not know of it
background bash -c 'exec 9>>"$1"; flock 9; exec sleep 60' - "$V/started"
check "it is held beside the view" wait_for 5 not_free ws/started
check "and in it" not_free "$V/started"
kill "$background_pid"
wait "$background_pid" 2>/dev/null || true
check "until that program ends" wait_for 5 flock -n ws/started true
check "on both sides" flock -n "$V/started" true
expect_status 0 "$FSGATE" unmount "$tmp/mnt"

# Two writers at a time, each with its own rows, each transaction two rows.
ROUNDS=25
writer() { # DATABASE NAME
  local i
  for ((i = 1; i <= ROUNDS; i++)); do
    printf ".timeout 30000\nbegin immediate;\ninsert into t values('%s',%d);\ninsert into t values('%s',-%d);\ncommit;\n" \
      "$2" "$i" "$2" "$i" | sqlite3 -bail "$1" || return 1
  done
}
two_writers() { # MODE NAME DIR DIR
  local first r=0
  sqlite3 "ws/$2" "pragma journal_mode=$1; create table t(who, n)" >/dev/null
  writer "$3/$2" a &
  first=$!
  writer "$4/$2" b || r=$?
  wait "$first" || r=$?
  return "$r"
}
expect_all_rows() { # WHAT DATABASE...
  local what=$1 database got
  shift
  for database; do
    got=$(sqlite3 -cmd '.timeout 30000' "$database" 'pragma integrity_check; select count(*), sum(n) from t')
    check_equal "$what: every row is there" "$got" "$(printf 'ok\n%s|0' $((ROUNDS * 4)))"
  done
}

echo "--- sqlite"
expect_status 0 "$FSGATE" mount --workspace ws "$tmp/mnt"
for mode in delete truncate persist wal; do
  check "two writers in the view, journal $mode" two_writers "$mode" "$mode.db" "$V" "$V"
  expect_all_rows "journal $mode" "ws/$mode.db" "$V/$mode.db"
done
check "two writers beside the view" two_writers delete beside.db ws ws
expect_all_rows "beside the view" ws/beside.db "$V/beside.db"
expect_status 0 "$FSGATE" unmount "$tmp/mnt"

# Whether memory is shared between both sides, as a WAL needs it: where the kernel maps the host's file itself.
mapped_alike() {
  python3 - ws/mapped "$V/mapped" <<'END'
import mmap, sys
with open(sys.argv[1], "w") as file:
    file.write("-" * 4096)
files = [open(name, "r+") for name in sys.argv[1:]]
beside, view = (mmap.mmap(file.fileno(), 4096) for file in files)
view[0:1] = b"v"
beside[1:2] = b"h"
sys.exit(view[:2] != b"vh" or beside[:2] != b"vh")
END
}
# A journal is found by its name and its size, so with one writer on each side the view must not believe what was true a
# second ago.
if run "$FSGATE" check --cache strict --workspace ws && [ "$status" = 0 ]; then
  expect_status 0 "$FSGATE" mount --cache strict --workspace ws "$tmp/mnt"
  modes=(delete truncate persist)
  ! mapped_alike || modes+=(wal)
  for mode in "${modes[@]}"; do
    check "a writer on each side, journal $mode" two_writers "$mode" "both-$mode.db" "$V" ws
    expect_all_rows "journal $mode" "ws/both-$mode.db" "$V/both-$mode.db"
  done
  expect_status 0 "$FSGATE" unmount "$tmp/mnt"
fi

expect_no_leaks "nothing is left" "$before"
finish
