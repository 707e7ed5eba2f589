#!/bin/bash
# deps.sh [--tests]: installs what building needs, and with --tests what the tests and .ci/run need too.
# deps.sh --mise: prints where the mise is, or would be, that the tests use.
#
# On Debian and its relatives with apt, for which it must be root or find sudo. Asks dpkg first: when
# everything is there, the network is not touched and no privilege needed. Where dnf or pacman is found
# instead, it names the packages that are missing and exits with 1.
#
# mise is in no distribution. It comes from npm's registry, whichever npm is configured for, one version, known by
# its checksum, into the user's cache directory. Without it only the test that uses it does not run, and says so.
set -euo pipefail

MISE_VERSION=2026.9.15
MISE_SHA256=b51f2463bc4fcdc3b0959b1454792f64be3612e73d856cbca4a062e39e070e74 # of the package
mise=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/stella-sandbox-tests/mise-$MISE_VERSION

with_tests=
for argument; do
  case $argument in
  --tests) with_tests=1 ;;
  --mise)
    echo "$mise"
    exit 0
    ;;
  --help)
    echo 'usage: deps.sh [--tests] | --mise'
    exit 0
    ;;
  *)
    echo "deps.sh: $argument: unknown option (they are --tests and --mise)" >&2
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

# What is put at $mise is whole and checked. Each step by itself ends it: -e is off in a function whose outcome is asked.
fetch_mise() {
  local package=jdxcode-mise-linux-x64-$MISE_VERSION.tgz unpacked result=0
  if [ "$(uname -m)" != x86_64 ]; then
    echo "deps.sh: there is no mise $MISE_VERSION for $(uname -m) at npm's registry" >&2
    return 1
  fi
  mkdir -p "${mise%/*}" && unpacked=$(mktemp -d "$mise.XXXXXX") || return 1
  (
    cd "$unpacked" &&
      npm pack --loglevel error --ignore-scripts "@jdxcode/mise-linux-x64@$MISE_VERSION" >/dev/null &&
      sha256sum --quiet -c <<<"$MISE_SHA256  $package" &&
      tar -xzf "$package" package/bin/mise &&
      chmod 755 package/bin/mise &&
      mv -f package/bin/mise "$mise"
  ) || result=1
  rm -rf "$unpacked"
  return "$result"
}

if has apt-get; then
  packages=(build-essential meson ninja-build pkgconf fuse3 libfuse3-dev libseccomp-dev
    libglib2.0-dev libcmocka-dev)
  add_tests clang clang-format clang-tidy libclang-rt-14-dev git sqlite3 python3 python3-venv acl attr
  add_tests python3-jsonschema bubblewrap procps bindfs fio stress-ng
  # later releases have another clang: the package without a number is the one that fits
  if [ -n "$with_tests" ] && ! grep -qs '^VERSION_ID="12"' /etc/os-release; then
    packages=("${packages[@]/libclang-rt-14-dev/libclang-rt-dev}")
  fi
  if needs_node; then
    packages+=(nodejs npm)
  fi
  mapfile -t absent < <(missing deb_installed)
  if [ "${#absent[@]}" != 0 ]; then
    echo "installing: ${absent[*]}"
    # the package lists of a fresh machine may be old or not there at all
    as_root apt-get update -q
    as_root env DEBIAN_FRONTEND=noninteractive \
      apt-get install -y -q --no-install-recommends "${absent[@]}"
  fi
elif has dnf; then
  packages=(gcc gcc-c++ make meson ninja-build pkgconf-pkg-config fuse3 fuse3-devel libseccomp-devel
    glib2-devel libcmocka-devel)
  add_tests clang clang-tools-extra compiler-rt libasan libubsan libtsan git-core sqlite python3 acl attr
  add_tests python3-jsonschema bubblewrap procps-ng fio stress-ng
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
  add_tests clang compiler-rt git sqlite python python-jsonschema acl attr bubblewrap procps-ng fio stress-ng
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

if [ -n "$with_tests" ] && [ ! -x "$mise" ]; then
  echo "fetching mise $MISE_VERSION"
  fetch_mise || echo "deps.sh: mise $MISE_VERSION could not be fetched with npm: tests that need it will not run" >&2
fi
