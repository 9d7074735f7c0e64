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

case " $* " in
  *" --help "* | *" -h "*)
    if [ -x "$build/bin/kolo-train" ]; then exec "$build/bin/kolo-train" compare --help; fi
    sed -n '2,7s/^# \{0,1\}//p' "$0"
    echo "(kolo-train is not built yet; run this without --help once, and --help will list its options)"
    exit 0
    ;;
esac

"$root/cmake/setup.sh" --with plots
if command -v ccache >/dev/null 2>&1; then
  export CMAKE_CXX_COMPILER_LAUNCHER="${CMAKE_CXX_COMPILER_LAUNCHER-ccache}"
fi

# Runs what it is given into the log, and shows how far ninja has come, in one line that is replaced.
logged() {
  { "$@" 2>&1 && echo "status 0" || echo "status $?"; } | {
    last=""
    while IFS= read -r line; do
      printf '%s\n' "$line" >>"$log"
      last=$line
      case "$line" in
        "["*/*"]"*) [ ! -t 2 ] || printf '\rkolo: building %s] ' "${line%%]*}" >&2 ;;
      esac
    done
    [ ! -t 2 ] || printf '\r\033[K' >&2
    [ "$last" = "status 0" ]
  }
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
