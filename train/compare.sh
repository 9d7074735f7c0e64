#!/bin/sh
# Compares data-parallel strategies, from a bare machine to a report, in one command.
#
#   train/compare.sh [options of kolo-train compare]      --help lists them
#
# Installs what is missing, builds kolo-train, and runs `kolo-train compare`. Paths in options, and the report folder, are
# relative to where you are.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
build=$root/build/release
log=$build/build.log

for word in "$@"; do
  case "$word" in --help | -h) ;; *) continue ;; esac
  if [ -x "$build/bin/kolo-train" ]; then exec "$build/bin/kolo-train" compare --help; fi
  sed -n '2,7s/^# \{0,1\}//p' "$0"
  echo "(kolo-train is not built yet; run this without --help once, and --help will list its options)"
  exit 0
done

"$root/cmake/setup.sh" --with plots
if command -v ccache >/dev/null 2>&1; then
  export CMAKE_CXX_COMPILER_LAUNCHER="${CMAKE_CXX_COMPILER_LAUNCHER-ccache}"
fi

# What it reads goes into the log; how far ninja has come is shown in one line that is replaced.
log_and_show() {
  while IFS= read -r line || [ -n "$line" ]; do
    printf '%s\n' "$line" >>"$log"
    case "$line" in
      "["*/*"]"*) [ ! -t 2 ] || printf '\rkolo: building %s] ' "${line%%]*}" >&2 ;;
    esac
  done
  [ ! -t 2 ] || printf '\r\033[K' >&2
}

# Runs what it is given, logged; true where that went well. A pipe's status is that of its end, so the command's comes by
# another way, where its output cannot be taken for it.
logged() {
  went=$({ { if "$@" 2>&1 3>&-; then echo well >&3; fi; } | log_and_show; } 3>&1 >&2)
  [ "$went" = well ]
}

mkdir -p "$build"
: >"$log"
[ -t 2 ] || echo "kolo: building (log: $log)" >&2
if ! { logged cmake -S "$root" --preset release &&
  logged cmake --build "$build" --parallel "$(nproc)" --target kolo-train; }; then
  tail -n 15 "$log" >&2
  echo "kolo: the build failed; all of it is in $log" >&2
  exit 1
fi

exec "$build/bin/kolo-train" compare "$@"
