#!/bin/bash
# deps.sh [--tests]: installs what building needs, and with --tests what the tests and .ci/run need too.
#
# On Debian and its relatives with apt, for which it must be root or find sudo. Asks dpkg first: when
# everything is there, the network is not touched and no privilege needed. Where dnf or pacman is found
# instead, it names the packages that are missing and exits with 1.
set -euo pipefail

with_tests=
for argument; do
  case $argument in
  --tests) with_tests=1 ;;
  --help)
    echo 'usage: deps.sh [--tests]'
    exit 0
    ;;
  *)
    echo "deps.sh: $argument: unknown option (the only one is --tests)" >&2
    exit 2
    ;;
  esac
done

has() {
  command -v "$1" >/dev/null 2>&1
}

# node and npm may come from elsewhere than a package
needs_node() {
  [ -n "$with_tests" ] && ! { has node && has npm; }
}

# Adds the packages of the tests to the array `packages`.
add_tests() {
  [ -z "$with_tests" ] || packages+=("$@")
}

# missing QUERY...: those of the packages that the query command does not know as installed.
missing() {
  local package
  for package in "${packages[@]}"; do
    "$@" "$package" >/dev/null 2>&1 || echo "$package"
  done
}

deb_installed() {
  [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  elif has sudo; then
    sudo "$@"
  else
    echo "deps.sh: to install packages it must be run as root (or sudo be there): ${absent[*]}" >&2
    exit 1
  fi
}

if has apt-get; then
  packages=(build-essential meson ninja-build pkgconf fuse3 libfuse3-dev libseccomp-dev
    libglib2.0-dev libcmocka-dev)
  add_tests clang clang-format clang-tidy libclang-rt-14-dev git sqlite3 python3 python3-venv acl attr
  add_tests bubblewrap procps bindfs fio stress-ng
  # later releases have another clang: the package without a number is the one that fits
  if [ -n "$with_tests" ] && ! grep -qs '^VERSION_ID="12"' /etc/os-release; then
    packages=("${packages[@]/libclang-rt-14-dev/libclang-rt-dev}")
  fi
  if needs_node; then
    packages+=(nodejs npm)
  fi
  mapfile -t absent < <(missing deb_installed)
  if [ "${#absent[@]}" = 0 ]; then
    exit 0
  fi
  echo "installing: ${absent[*]}"

  # the package lists of a fresh machine may be old or not there at all
  as_root apt-get update -q
  as_root env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -q --no-install-recommends "${absent[@]}"
elif has dnf; then
  packages=(gcc gcc-c++ make meson ninja-build pkgconf-pkg-config fuse3 fuse3-devel libseccomp-devel
    glib2-devel libcmocka-devel)
  add_tests clang clang-tools-extra compiler-rt libasan libubsan libtsan git-core sqlite python3 acl attr
  add_tests bubblewrap procps-ng fio stress-ng
  if needs_node; then
    packages+=(nodejs nodejs-npm)
  fi
  mapfile -t absent < <(missing rpm -q --whatprovides)
  if [ "${#absent[@]}" != 0 ]; then
    echo "deps.sh: install first: dnf install ${absent[*]}" >&2
    exit 1
  fi
elif has pacman; then
  packages=(gcc make meson ninja pkgconf fuse3 libseccomp glib2 glib2-devel cmocka)
  add_tests clang compiler-rt git sqlite python acl attr bubblewrap procps-ng fio stress-ng
  if needs_node; then
    packages+=(nodejs npm)
  fi
  mapfile -t absent < <(missing pacman -Q)
  if [ "${#absent[@]}" != 0 ]; then
    echo "deps.sh: install first: pacman -S ${absent[*]}" >&2
    exit 1
  fi
else
  cat >&2 <<'END'
deps.sh: no apt-get, dnf or pacman here. What is needed: a C compiler, meson >= 1.0, ninja, pkg-config, and
the development files of libfuse3 >= 3.14, libseccomp >= 2.5, glib >= 2.70, cmocka >= 1.1.5
END
  exit 1
fi
