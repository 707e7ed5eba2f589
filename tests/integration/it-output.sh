#!/usr/bin/env bash
# What becomes of large outputs: beginning, end and the file of the whole, however the command prints, and
# whatever it does to that file; in memory that stays bounded.
#
# shellcheck disable=SC1091,SC2016,SC2154 # what sh-lib.sh sets; texts that the inner shell expands
. "${STELLA_TEST_LIB:?run this test through meson test}/sh-lib.sh"
preflight root fuse || exit $?

ws=$tmp/ws
keep=$tmp/keep
mkdir "$ws" "$keep"
chmod 1777 "$keep"
cd "$ws" || exit 1
expect_status 0 "$EXEC" run -- true
before=$(list_leaks)

# value FILE KEY: from a result; text as it is.
value() {
  python3 -c 'import json, sys
value = json.load(open(sys.argv[1]))[sys.argv[2]]
sys.stdout.write(value if isinstance(value, str) else json.dumps(value))' "$1" "$2"
}

expect_value() { # KEY EXPECTED
  check_equal "$1 is $2" "$(value "$out_file" "$1")" "$2"
}

# Exactly the cap, one less, one more.
mebi=$((1024 * 1024))
for extra in -1 0 1; do
  expect_status 0 "$EXEC" run --json --limit output_bytes=1M -- head -c $((mebi + extra)) /dev/zero
  expect_value stdout_bytes $((mebi + extra))
  expect_value stdout_truncated "$([ "$extra" = 1 ] && echo true || echo false)"
done
expect_match out 'exceeded 1MiB\]\\n", "stdout_encoding": "utf-8"'

# Beginning and end, in one piece each; the command's own end is not changed by it.
expect_status 0 "$EXEC" run --json --limit output_bytes=20 --limit tail_bytes=8 -- seq 1000
expect_value stdout "$(printf '1\n2\n3\n4\n5\n6\n\n[stella: 3873 bytes left out]\n99\n1000\n')"
expect_value stdout_bytes 3893
expect_value stdout_spill null
expect_value limits_hit '["output_bytes"]'
expect_status 3 "$EXEC" run --json --limit output_bytes=20 --limit tail_bytes=20 -- sh -c 'seq 1000; exit 3'
expect_value stdout "$(printf '\n[stella: 3873 bytes left out]\n'; seq 1000 | tail -c 20)"
expect_status 0 "$EXEC" run --json --limit output_bytes=4 --limit tail_bytes=2 -- printf 'a\377cdefghij'
expect_value stdout Yf9pag==
expect_value stdout_encoding base64
expect_status 125 "$EXEC" run --limit output_bytes=20 --limit tail_bytes=21 -- touch ran
expect_match err 'tail_bytes'
check_not 'nothing ran' test -e ran

# Without a place that stays there is no file; with one, and one byte too many, there is.
expect_status 0 "$EXEC" run --json --limit output_bytes=20 --limit spill=true -- seq 1000
expect_value stdout_spill null
expect_match out 'exceeded 20B\]'
run_spilling() { # ARGUMENT...
  "$EXEC" run --json --rw "$keep:/tmp" --limit output_bytes=20 --limit spill=true "$@"
}
expect_status 0 run_spilling -- printf 01234567890123456789
expect_value stdout_spill null
check_equal 'no file for what fits' "$(ls -A "$keep")" ''
expect_status 0 run_spilling -- sh -c 'seq 1000; seq 2000 >&2'
spilled=$(value "$out_file" stdout_spill)
check "its path: $spilled" grep -qE '^/tmp/stella-stdout-[0-9a-f]{16}[.]txt$' <<<"$spilled"
file=$keep/${spilled#/tmp/}
check_equal 'it holds all' "$(sha256sum <"$file")" "$(seq 1000 | sha256sum)"
check_equal 'it is private, and of the owner of the mount' "$(stat -c '%a %u:%g' "$file")" "600 $(stat -c %u:%g "$keep")"
expect_match out "exceeded 20B, whole output in $spilled\]"
check_equal 'stderr has its own' "$(sha256sum <"$keep/$(value "$out_file" stderr_spill | cut -c6-)")" "$(seq 2000 | sha256sum)"
expect_status 0 run_spilling -- cat "$spilled"
check_equal 'a later command reads it' "$(sha256sum <"$keep/$(value "$out_file" stdout_spill | cut -c6-)")" "$(seq 1000 | sha256sum)"
rm "$keep"/*
chown 1234:1235 "$keep"
expect_status 0 run_spilling --limit tail_bytes=4 -- seq 1000
check_equal 'of whoever owns that' "$(stat -c %u:%g "$keep"/*)" 1234:1235
expect_match out 'bytes left out, whole output in /tmp/stella-stdout-[0-9a-f]{16}.txt\]\\n'
spilled=$(value "$out_file" stdout_spill)
expect_status 0 run_spilling -- sh -c "rm $spilled && echo changed > $spilled"
rm "$keep"/*
expect_status 0 "$EXEC" run --result "$tmp/result" --rw "$keep:/tmp" --limit output_bytes=20 --limit spill=true -- seq 1000
check_equal 'beside live output' "$out" "$(seq 1000)"
check_equal 'too' "$(sha256sum <"$keep/$(value "$tmp/result" stdout_spill | cut -c6-)")" "$(seq 1000 | sha256sum)"
rm "$keep"/*
python3 - "$tmp/policy" "$ws" "$tmp/given" <<'END'
import json, sys
json.dump({"version": 1, "filesystem": {"working_dir": "/workspace", "workspace_root": sys.argv[2], "temp_dir_host": sys.argv[3]},
           "limits": {"output_bytes": 20, "spill": True}}, open(sys.argv[1], "w"))
END
expect_status 0 "$EXEC" run --json --policy "$tmp/policy" -- seq 1000
check_equal 'in a given temporary directory' "$(sha256sum <"$tmp/given/$(value "$out_file" stdout_spill | cut -c6-)")" "$(seq 1000 | sha256sum)"

# A /tmp that is read-only, or the session's own behind a mount.
expect_status 0 "$EXEC" run --json --ro "$keep:/tmp" --limit output_bytes=20 --limit spill=true -- seq 1000
expect_value stdout_spill null
check_equal 'nothing is written to a read-only mount' "$(ls -A "$keep")" ''
expect_status 0 "$EXEC" run --json --rw "$keep:/tmp/below" --limit output_bytes=20 --limit spill=true -- seq 1000
expect_value stdout_spill null
check_equal 'nor beside it' "$(ls -A "$keep")" ''

# The command is at work in the same directory: takes the file away, puts a link there, fills the disk.
echo victim >"$tmp/victim"
tree=$(snapshot "$tmp/victim")
grab='head -c 1000 /dev/zero; until f=$(ls /tmp/stella-stdout-* 2>/dev/null); do :; done;'
expect_status 0 run_spilling -- sh -c "$grab"' rm $f; head -c 1000000 /dev/zero'
expect_value stdout_spill null
expect_value stdout_bytes 1001000
check_equal 'a removed file stays removed' "$(ls -A "$keep")" ''
expect_status 0 run_spilling -- sh -c "$grab"' rm $f; ln -s '"$tmp/victim"' $f; head -c 1000000 /dev/zero'
expect_value stdout_spill null
check 'a planted link is not followed' test -L "$(echo "$keep"/*)"
rm "$keep"/*
expect_status 0 run_spilling -- sh -c "$grab"' mv $f /tmp/mine; mkdir $f; head -c 1000000 /dev/zero'
expect_value stdout_spill null
check_equal 'a renamed one is written on' "$(stat -c %s "$keep/mine")" 1001000
rm -r "${keep:?}"/*
expect_unchanged 'nothing else was written' "$tmp/victim" "$tree"
mkdir "$tmp/small"
mount -t tmpfs -o size=1m,mode=1777 none "$tmp/small"
expect_status 7 "$EXEC" run --json --rw "$tmp/small:/tmp" --limit output_bytes=20 --limit spill=true -- sh -c 'head -c 5000000 /dev/zero; exit 7'
expect_value stdout_bytes 5000000
expect_value stdout_spill null
check_equal 'a full disk is given back' "$(ls -A "$tmp/small")" ''
check 'with its room' sh -c 'head -c 900000 /dev/zero >"$1"' sh "$tmp/small/again"
umount "$tmp/small"

# All the same for an ordinary user, whose files they are.
chown 1234:1235 "$ws" "$keep"
as_user() { as-user --home "$tmp/home" 1234 -- "$@"; }
expect_status 0 as_user "$EXEC" run --json --rw "$keep:/tmp" --limit output_bytes=20 --limit spill=true -- seq 1000
check_equal 'a file of theirs' "$(stat -c '%a %u' "$keep"/*)" '600 1234'
rm "$keep"/*

# Both streams flood at once: the caps are kept apart, no writer fails or waits for ever, memory is bounded by the two
# caps. Of the same program with a cap of 1 MiB, and with files.
cat >"$ws/flood.py" <<'END'
import os, signal, sys, threading, time
signal.signal(signal.SIGPIPE, signal.SIG_IGN)
until = time.monotonic() + float(sys.argv[1])
counts = {}
longest = {}
def flood(fd, block):
    total = worst = 0
    while (now := time.monotonic()) < until:
        total += os.write(fd, block)
        worst = max(worst, time.monotonic() - now)
    counts[fd], longest[fd] = total, worst
threads = [threading.Thread(target=flood, args=(fd, b"x" * 65536)) for fd in (1, 2)]
for thread in threads: thread.start()
for thread in threads: thread.join()
with open("counts", "w") as f: print(counts[1], counts[2], int(max(longest.values()) * 1000), file=f)
END
flood() { # CAP SECONDS ARGUMENT...
  local cap=$1 seconds=$2 pid peak=0 now
  shift 2
  rm -f counts
  "$EXEC" run --json --limit "output_bytes=$cap" --rw "$keep:/tmp" "$@" -- python3 flood.py "$seconds" >"$out_file" 2>"$err_file" &
  pid=$!
  test_pids+=("$pid")
  until test -s counts; do
    now=$(sed -n 's/^VmHWM:[^0-9]*\([0-9]*\) kB$/\1/p' "/proc/$pid/status" 2>/dev/null) || break
    [ -z "$now" ] || peak=$now
    sleep 0.02
  done
  status=0
  wait "$pid" || status=$?
  peak_kib=$peak
  check_equal "both streams flood $seconds s with a cap of $cap $*: no write failed" "$status" 0
  read -r out_count err_count longest <counts
  expect_value stdout_bytes "$out_count"
  expect_value stderr_bytes "$err_count"
  least=$(($(numfmt --from=iec "$cap") + mebi))
  check "more than the caps: $out_count, $err_count" test "$out_count" -gt "$least" -a "$err_count" -gt "$least"
  check "no write took long: $longest ms" test "$longest" -lt 2000
  # A sanitizer keeps what was freed.
  sanitized "$EXEC" || check "memory while it floods: $peak_kib KiB" test "$peak_kib" -gt 0 -a "$peak_kib" -lt $((2 * $(numfmt --from=iec "$cap") / 1024 + 16384))
}
flood 10M 5
flood 1M 2 --limit tail_bytes=512K
check_equal 'cap, and marker' "$(value "$out_file" stderr | tr -d x | tr -d '\n')" "[stella: $((err_count - mebi)) bytes left out]"
check_equal 'all of the cap is kept' "$(value "$out_file" stderr | tr -cd x | wc -c)" "$mebi"
flood 1M 1 --limit spill=true
check_equal 'each file has its own stream' "$(stat -c %s "$keep/$(value "$out_file" stdout_spill | cut -c6-)" "$keep/$(value "$out_file" stderr_spill | cut -c6-)" | xargs)" "$out_count $err_count"
rm -f "$keep"/*

# Single bytes, and one stream in silence.
expect_status 0 "$EXEC" run --json --limit output_bytes=1000 --limit tail_bytes=3 -- python3 -c 'import os
for i in range(20000): os.write(2, b"%d" % (i % 10))'
expect_value stderr_bytes 20000
expect_value stdout_bytes 0
expect_match out 'left out\]\\n789"'

expect_no_leaks 'nothing is left of all this' "$before"
finish
