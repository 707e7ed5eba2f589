# check-headers.sh INCLUDE_DIR: every public header compiles when it is the only one that is included, as
# C11 (-pedantic -Werror) and as C++, and twice in one file. CC is the C compiler, CXX the C++ one.
set -euo pipefail

include_dir=${1:?}
cc=${CC:-cc}
cxx=${CXX:-}
failed=0
checked=0

if [ -z "$cxx" ]; then
  for candidate in c++ g++ clang++; do
    if command -v "$candidate" >/dev/null; then
      cxx=$candidate
      break
    fi
  done
fi
if [ -z "$cxx" ]; then
  echo 'no C++ compiler (c++, g++, clang++; CXX names another one)'
  [ "${STELLA_TESTS_MUST_RUN:-}" = 1 ] && exit 1
  exit 77
fi

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# glib's headers are not ours to be strict about
read -ra glib < <(pkg-config --cflags gio-unix-2.0 | sed 's/-I/-isystem /g')
strict=(-pedantic -pedantic-errors -Wall -Wextra -Wundef -Wshadow -Werror -fsyntax-only -I "$include_dir")

# compile NAME LANGUAGE COMPILER...
compile() {
  local name=$1 language=$2
  shift 2
  checked=$((checked + 1))
  "$@" "${strict[@]}" "${glib[@]}" "$tmp/header.${language}" || {
    echo "FAIL: <$name> as $language"
    failed=$((failed + 1))
  }
}

for header in "$include_dir"/stella/*.h; do
  name=stella/${header##*/}
  for language in c cc; do
    # a declaration, for ISO C knows no empty file
    printf '#include <%s>\n#include <%s>\nextern int declared;\n' "$name" "$name" >"$tmp/header.$language"
  done
  # CC may be several words ("ccache gcc")
  # shellcheck disable=SC2086
  compile "$name" c $cc -std=c11 -Wstrict-prototypes
  # shellcheck disable=SC2086
  compile "$name" cc $cxx -std=c++17
done

echo "$checked compiled, $failed failed"
[ "$checked" -gt 0 ] && [ "$failed" = 0 ]
