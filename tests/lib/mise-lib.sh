# Functions for tests of tool trees; sourced after sh-lib.sh.
#
#   home/bin/mise, home/.mise-tools/{installs,shims}   the system's tree
#   home/users/ID/.mise-tools                          a user's, made by sessions
#
# shellcheck shell=bash
# shellcheck disable=SC2154 # $tmp is sh-lib.sh's

# add_tool TREE DIRECTORY VERSION PROGRAM: an install whose program says which one it is, and what it was given.
add_tool() {
  local bin=$1/installs/$2/$3/bin
  mkdir -p "$bin"
  printf '#!/bin/sh\necho "%s %s:$*"\n' "$4" "$3" >"$bin/$4"
  chmod 755 "$bin/$4"
}

# write_policy FILE HOME ID [JSON]: a policy of $tmp/ws and $tmp/data with those tools, without a network. Every
# directory that mise writes to is in the user's tree, and the system's tree holds what it has to find, all said by
# their host paths. JSON: more members of "env", each with a comma behind it.
write_policy() {
  cat >"$1" <<JSON
{"version": 1,
 "filesystem": {"workspace_root": "$tmp/ws", "working_dir": "/workspace", "stella_home": "$2",
   "user_tools_dir": "$2/users/$3/.mise-tools",
   "mounts": [{"host_path": "$tmp/ws", "view_path": "/workspace", "access": "rw"},
     {"host_path": "$tmp/data", "view_path": "/user", "access": "rw"}]},
 "network": {"mode": "disabled"},
 "env": {${4:-}
   "MISE_DATA_DIR": "$2/users/$3/.mise-tools",
   "MISE_CACHE_DIR": "$2/users/$3/.mise-tools/cache",
   "MISE_STATE_DIR": "$2/users/$3/.mise-tools/state",
   "MISE_CONFIG_DIR": "$2/users/$3/.mise-tools/config",
   "MISE_SYSTEM_CONFIG_DIR": "$2/.mise-tools"}}
JSON
}

# temp_links TREE...: what a preparation of these trees has left of its temporary links.
temp_links() {
  find "$@" -name '.stella-link-*'
}
