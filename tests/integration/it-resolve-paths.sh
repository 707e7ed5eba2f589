#!/usr/bin/env bash
# stella-fsgate resolve: its verdicts, text and JSON, exit statuses; mounts of the host's below a mount, procfs with its magic
# links among them; and that a mounted view of the same policy says the same.
. "${STELLA_TEST_LIB:?run this test through meson test}/sh-lib.sh"
preflight root fuse || exit $?

before=$(list_leaks)
cd "$tmp"
mkdir -p ws/dir/sub ws/hostproc ws/hosttmp ws/inner user ro outside mnt
echo file >ws/file
echo f >ws/dir/f
echo inner >ws/inner/f
echo notes >user/notes
echo t >ro/t
echo outside >outside/f
mkfifo ws/fifo
ln -s dir ws/in
ln -s /etc ws/etc
ln -s "$tmp/user/notes" ws/by-host
ln -s /user/notes ws/by-view
ln -s ../outside ws/up
ln -s nothing ws/dangling
ln -s /proc/self/root ws/magic
V=$tmp/mnt
options=(--workspace ws --user-dir user --ro "$tmp/ro:/opt/stella" --ro "$tmp/ws/inner:/inner")
resolve() { # STATUS ARGUMENT...
  expect_status "$1" "$FSGATE" resolve "${options[@]}" "${@:2}"
}

echo "--- text"
resolve 0 file
expect_line out file
expect_line out "  strict  /workspace/file = $tmp/ws/file (mount /workspace, rw)"
expect_line out "  open    /workspace/file = $tmp/ws/file (mount /workspace, rw, file)"
resolve 0 --write /workspace/dir new /user/notes ./dir/../file
expect_line out "  open    /workspace/new = $tmp/ws/new (mount /workspace, rw, absent)"
check_not "nothing is made to find out" test -e ws/new
resolve 1 "$tmp/user/notes" # the open form takes view paths only
expect_line out "  strict  /user/notes = $tmp/user/notes (mount /user, rw)"
resolve 1 absent
expect_line out "  strict  /workspace/absent = $tmp/ws/absent (mount /workspace, rw)"
expect_line out '  open    refused: "absent": No such file or directory (ENOENT)'
resolve 1 file etc/passwd
expect_line out '  strict  refused: "etc/passwd": "/workspace/etc" is a link to "/etc", and links are not followed here (ELOOP)'
expect_line out '  open    refused: "etc/passwd": "/workspace/etc" is a link to "/etc", which leaves the view (EACCES, symlink-escape)'
resolve 1 by-host
expect_match out "which leaves the view \\(a host path; in the view this is \"/user/notes\"\\) \\(EACCES, symlink-escape\\)"
resolve 1 by-view
expect_line out "  open    /user/notes = $tmp/user/notes (mount /user, rw, file)"
resolve 1 --write /opt/stella/t inner/f
expect_match out 'refused: "/opt/stella/t": read-only mount /opt/stella; writable: /workspace /user \(EROFS, read-only-mount\)$'
expect_match out 'refused: "inner/f": read-only mount /inner; writable'
resolve 0 /opt/stella/t inner/f
resolve 1 --write /new
expect_match out 'open    refused: "/new": a change in a directory that exists only to lead to a mount'
resolve 1 fifo
expect_line out '  open    refused: "fifo": No such device or address (ENXIO)'
resolve 1 $'a\nb\e[1m'
expect_line out 'a\x0ab\x1b[1m'
expect_no_match out $'\e'

echo "--- JSON"
resolve 1 --json --write file etc $'\xff' /opt/stella/t
expect_one_line out
check "it is as the manual says" python3 - "$out" "$tmp" <<'END'
import base64, json, sys
answer, tmp = json.loads(sys.argv[1]), sys.argv[2]
assert list(answer) == ["version", "write", "paths"] and answer["version"] == 1 and answer["write"] is True
keys = ["allowed", "view_path", "host_path", "mount", "access", "type", "error"]
for path in answer["paths"]:
    assert list(path) == ["path", "strict", "open"]
    for form in ("strict", "open"):
        assert list(path[form]) == keys, path
        error = path[form]["error"]
        assert path[form]["allowed"] == (error is None)
        if error:
            assert list(error) == ["kind", "errno", "reason", "at", "mount", "message"]
file, etc, bytes_, ro = answer["paths"]
assert file["strict"] == dict(zip(keys, [True, "/workspace/file", tmp + "/ws/file", "/workspace", "rw", None, None]))
assert file["open"]["type"] == "file"
assert etc["open"]["error"]["kind"] == "symlink" and etc["open"]["error"]["reason"] == "symlink-escape"
assert etc["open"]["error"]["at"] == "/workspace/etc"
assert base64.b64decode(bytes_["path"]["b64"]) == b"\xff" and bytes_["open"]["type"] == "absent"
assert ro["strict"]["error"]["errno"] == "EROFS" and ro["open"]["error"]["mount"] == "/opt/stella"
END

echo "--- mistakes"
for arguments in "" "--what" "--workspace $tmp/none file" "--runtime x file"; do
  # shellcheck disable=SC2086 # words on purpose
  expect_status 2 "$FSGATE" resolve $arguments
  expect_one_line err
  check_equal "nothing on stdout" "$out" ""
done
resolve 1 -- --write
expect_match out '^--write$'
expect_status 0 "$FSGATE" resolve --help
expect_match out '^Usage: stella-fsgate resolve \[--write\]'

echo "--- what the host has mounted below"
mount -t tmpfs none ws/hosttmp
echo hidden >ws/hosttmp/f
mount --bind /proc ws/hostproc
for path in hosttmp/f hosttmp hostproc/self/root hostproc/self/cwd/file hostproc/1/exe; do
  for write in "" --write; do
    resolve 1 --json ${write:+"$write"} "$path"
    expect_no_match out '"allowed":true,"view_path":"[^"]*","host_path":"[^"]'
  done
done
resolve 1 hosttmp/f
expect_line out '  strict  refused: "hosttmp/f": what the host has mounted there is not part of the mount (EXDEV, stand-in)'
expect_line out '  open    refused: "hosttmp/f": No such file or directory (ENOENT)'
resolve 1 hosttmpX/new # not below it, only not there
expect_line out "  strict  /workspace/hosttmpX/new = $tmp/ws/hosttmpX/new (mount /workspace, rw)"

echo "--- a mounted view says the same"
# Reading: does it open, and if not, with which error.
in_view() {
  python3 -c 'import errno, os, sys
os.chdir(sys.argv[1])
try: os.close(os.open(sys.argv[2], os.O_RDONLY | os.O_NONBLOCK)); print("ok")
except OSError as e: print(errno.errorcode[e.errno])' "$V/workspace" "$1"
}
in_resolver() {
  run "$FSGATE" resolve "${options[@]}" --json "$1"
  python3 -c 'import json, sys
open = json.loads(sys.argv[1])["paths"][0]["open"]
print("ok" if open["allowed"] else open["error"]["errno"])' "$out"
}
expect_status 0 "$FSGATE" mount "${options[@]}" "$V"
for path in file dir/f absent in/f in/../file by-view by-host etc etc/passwd up/f dangling magic magic/etc file/ file/x in/ \
  dir/sub/../f absent/../file file/../file ../user/notes ../opt/stella/t inner/f hosttmp hosttmp/f hostproc/self/root; do
  check_equal "$path" "$(in_resolver "$path")" "$(in_view "$path")"
done
expect_status 0 "$FSGATE" unmount "$V"

umount ws/hosttmp ws/hostproc
expect_no_leaks "nothing is left" "$before"
finish
