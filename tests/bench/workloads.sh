# The workloads of `run`, and its table. Sourced by it: uses its variables.
#
# shellcheck shell=bash
# shellcheck disable=SC2154 # set by run and bench-lib.sh

# make_common: what the workloads start from. It stays outside of what is measured.
make_common() {
  local i
  mkdir "$work/common/tree" "$work/common/project" "$work/common/tmp"
  chmod 1777 "$work/common/tmp"
  "$BENCH_FS" "$work/common/tree" make-tree "$tree_files"
  tar -C "$work/common" -cf "$work/common/tree.tar" tree
  if needs make; then
    printf '%s\n' 'objects = $(patsubst %.c,%.o,$(wildcard *.c))' 'all: $(objects)' \
      '%.o: %.c $(wildcard *.h)' '	$(CC) -O0 -c -o $@ $<' >"$work/common/project/Makefile"
    for ((i = 0; i < 30; i++)); do
      printf '#pragma once\n#include <stdio.h>\nint call_%d(int n);\n' "$i" >"$work/common/project/part$i.h"
      {
        printf '#include "part%d.h"\n' $(seq 0 29)
        printf 'int call_%d(int n)\n{\n\treturn printf("%%d\\n", n) + %d;\n}\n' "$i" "$i"
      } >"$work/common/project/part$i.c"
    done
    tar -C "$work/common" -cf "$work/common/project.tar" project
  fi
  if needs npm; then
    mkdir -p "$work/common/package"
    "$BENCH_FS" "$work/common/package" make-tree "$((tree_files / 2))"
    echo '{"name": "many", "version": "1.0.0"}' >"$work/common/package/package.json"
    tar -C "$work/common" -czf "$work/common/many.tgz" package
  fi
  if needs git-clone || needs git-status; then
    export GIT_CONFIG_GLOBAL=$work/common/gitconfig GIT_CONFIG_NOSYSTEM=1
    printf '[user]\n\tname = bench\n\temail = bench@example.org\n[gc]\n\tauto = 0\n[safe]\n\tdirectory = *\n' \
      >"$GIT_CONFIG_GLOBAL"
    if [ -z "$repo" ]; then
      repo=$work/common/repo
      cp -r "$work/common/tree" "$repo"
      git -C "$repo" init -q
      git -C "$repo" add -A
      git -C "$repo" commit -qm 'all of it'
      git -C "$repo" gc -q
    fi
  fi
}

# needs ROW: whether the row is run at all.
needs() {
  wanted "$1" && can_work "$1" && [[ " ${work_rows[*]} " == *" $1 "* ]]
}

can_work() {
  case $1 in
  git-*) command -v git >/dev/null ;;
  make) command -v make >/dev/null && command -v cc >/dev/null ;;
  sqlite) command -v sqlite3 >/dev/null ;;
  npm) command -v npm >/dev/null ;;
  esac
}

# script_of ROW: what is done in the directory of the system, and what before and after it without being timed.
script_of() {
  before='' after=''
  case $1 in
  find-cold | find-warm) timed='find tree -type f -size -1000k >/dev/null' ;;
  grep-cold | grep-warm) timed='grep -rc nowhere tree >/dev/null || [ $? = 1 ]' ;;
  git-clone)
    before='rm -rf clone'
    timed="git clone -q --no-hardlinks '$repo' clone"
    ;;
  git-status)
    before="[ -d clone ] || git clone -q --no-hardlinks '$repo' clone; git -C clone status --porcelain"
    timed='git -C clone status --porcelain'
    ;;
  make)
    before="rm -rf project; tar xf '$work/common/project.tar'"
    timed='make -s -j2 -C project'
    after='rm -rf project'
    ;;
  untar)
    before='rm -rf out; mkdir out'
    timed="tar -C out -xf '$work/common/tree.tar'"
    after='rm -rf out'
    ;;
  rm)
    before="rm -rf out; mkdir out; tar -C out -xf '$work/common/tree.tar'"
    timed='rm -rf out'
    ;;
  sqlite)
    before='rm -f t.db*'
    timed="{ echo 'pragma journal_mode=wal; pragma synchronous=normal; create table t(a, b);'
      for i in {1..1000}; do echo \"insert into t values(\$i, 'some text of this row');\"; done; } | sqlite3 t.db >/dev/null"
    after='rm -f t.db*'
    ;;
  npm)
    before="rm -rf app; mkdir app; echo '{\"name\": \"app\", \"version\": \"1.0.0\"}' >app/package.json"
    timed="(cd app && npm install --offline --no-audit --no-fund --no-update-notifier --silent --cache \"\$TMPDIR/npm\" '$work/common/many.tgz')"
    after='rm -rf app'
    ;;
  esac
  case $1 in
  find-warm | grep-warm) before=$timed ;;
  esac
}

# time_work ROW SYSTEM: milliseconds; nothing when it failed there, which is said.
time_work() {
  local before timed after
  script_of "$1"
  mkdir -p "$work/common/tmp/$2"
  chmod 1777 "$work/common/tmp/$2"
  in_system "$2" env TMPDIR="$work/common/tmp/$2" HOME="$work/common/tmp/$2" bash -c "set -e
    cd '$(home_of "$2")'
    $before
    start=\${EPOCHREALTIME/[.,]/}
    $timed
    end=\${EPOCHREALTIME/[.,]/}
    $after
    printf '%d.%03d\n' \$(((end - start) / 1000)) \$(((end - start) % 1000))" 2>"$work/work.log" ||
    printf 'failed: %s, %s: %s\n' "$1" "$2" "$(head -n 1 "$work/work.log")" >&2
}

# print_table: medians, or the best of the rounds; ratios are times, so that more than 1 is slower than native, also for MB/s.
print_table() {
  sort -k1,1 -k2,2 -k3,3g "$values" | awk -v best_only="$best" -v order="${micro[*]} ${work_rows[*]}" -v systems="${chosen[*]}" '
    function flush() {
      if (n && best_only)
        median[row, name] = unit(row) == "MB/s" ? value[n] : value[1]
      else if (n)
        median[row, name] = n % 2 ? value[(n + 1) / 2] : (value[n / 2] + value[n / 2 + 1]) / 2
      n = 0
    }
    $1 != row || $2 != name { flush(); row = $1; name = $2; seen[row] = 1 }
    { value[++n] = $3 }
    function unit(r) {
      if (r ~ /^(read|write|mmap)$/) return "MB/s"
      return r ~ /^(find|grep|git|make|untar|rm$|sqlite|npm)/ ? "ms" : "us"
    }
    function ratio(r, s,    base, own) {
      base = median[r, "native"]; own = median[r, s]
      if (base <= 0 || own <= 0) return 0
      return unit(r) == "MB/s" ? base / own : own / base
    }
    END {
      flush()
      count = split(systems, name_of, " ")
      printf "%-14s %17s", "row", "native"
      for (i = 2; i <= count; i++) printf " %10s", name_of[i]
      printf " %12s\n", "to best peer"
      rows = split(order, listed, " ")
      for (k = 1; k <= rows; k++) {
        r = listed[k]
        if (!(r in seen)) continue
        printf "%-14s %12.2f %-4s", r, median[r, "native"], unit(r)
        best = own = 0
        for (i = 2; i <= count; i++) {
          x = ratio(r, name_of[i])
          printf " %10s", x ? sprintf("%.2f", x) : "-"
          if ((name_of[i] == "bindfs" || name_of[i] == "hp") && x && (!best || x < best)) best = x
          if (name_of[i] == "view" || (name_of[i] == "view-user" && !own)) own = x
        }
        printf " %12s\n", best && own ? sprintf("%.2f", own / best) : "-"
      }
    }'
}
