#!/bin/sh
# Measures kolo's collectives over shared memory and TCP beside the peers that are installed, and writes the results with
# tables and plots, in one command.
#
#   bench/results/make.sh [--out DIR] [--against PEERS] [--install] [--quick] [--bench PROGRAM]
#
#   --out DIR         where to; else bench/results/DATE-N-cores. It may be there, but without results in it
#   --against PEERS   a list as kolo-bench takes it, or none; else gloo, mpich, openmpi and openmpi:ucx, those of the build
#   --install         installs the peers first (cmake/setup.sh --with peers)
#   --quick           few sizes, few iterations, no peers: half a minute, to see that it works; no figures to quote
#   --bench PROGRAM   a kolo-bench that is built; else it is built first
#
# all_reduce, reduce_scatter, all_gather, all_to_all, broadcast and barrier, each over shm and tcp with 2 and with 4 ranks: less
# than 15 minutes on two idle cores. In DIR: README.md (tables), a PNG each of times and of bandwidths for every transport and
# number of ranks, the rows as JSON lines, limits.jsonl, and output.txt with what kolo-bench printed.
# Exit code 1 where a measurement failed: what could be measured is written all the same; 3 where results were wrong.
set -eu

root=$(cd "$(dirname "$0")/../.." && pwd)
collectives="allreduce reduce_scatter allgather alltoall broadcast barrier"
transports="shm tcp"
out=
bench=
against=
install=no
quick=no

say() { echo "make.sh: $*" >&2; }
fail() { say "$*"; exit 2; }

while [ $# -gt 0 ]; do
  case "$1" in
    --out | --against | --bench)
      if [ $# -lt 2 ] || [ -z "$2" ]; then fail "$1 needs a value; see $0 --help"; fi
      case "$1" in --out) out=$2 ;; --against) against=$2 ;; --bench) bench=$2 ;; esac
      shift 2 ;;
    --install) install=yes; shift ;;
    --quick) quick=yes; shift ;;
    -h | --help) sed -n '2,17s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) fail "unknown option '$1'; see $0 --help" ;;
  esac
done

out=${out:-$root/bench/results/$(date -u +%Y-%m-%d)-$(nproc)-cores}
mkdir -p "$out" || fail "--out $out: cannot make that folder"
for file in "$out"/README.md "$out"/*.jsonl; do
  [ ! -e "$file" ] || fail "$file is there already: remove it, or name another folder with --out"
done
log=$out/output.txt
: >"$log" || fail "--out $out: cannot write there"

[ "$install" = no ] || "$root/cmake/setup.sh" --with peers --with plots

if [ -z "$bench" ]; then
  build=$root/build/release
  bench=$build/bin/kolo-bench
  if command -v ccache >/dev/null 2>&1; then
    export CMAKE_CXX_COMPILER_LAUNCHER="${CMAKE_CXX_COMPILER_LAUNCHER-ccache}"
  fi
  say "building (log: $log)"
  if ! { cmake -S "$root" --preset release &&
    cmake --build "$build" --parallel "$(nproc)" --target kolo-bench; } >>"$log" 2>&1; then
    tail -n 15 "$log" >&2
    say "the build failed; all of it is in $log"
    exit 1
  fi
fi
[ -x "$bench" ] || fail "--bench $bench: there is no such program"

if [ -z "$against" ] && [ "$quick" = no ]; then
  against=$("$bench" peers | sed 's/^openmpi$/openmpi openmpi:ucx/' | tr '\n' ' ' | sed 's/ $//; s/ /,/g')
fi
[ -n "$against" ] || against=none

# Sizes and iterations of a collective between so many ranks: large ones cost most.
effort() {
  case "$quick-$1-$2" in
    yes-barrier-*) echo "--iterations 4 --passes 1 --warmup 1" ;;
    yes-*) echo "--min-bytes 64 --max-bytes 64K --factor 32 --iterations 4 --passes 1 --warmup 1" ;;
    no-barrier-*) echo "--seconds 0.5" ;;
    no-allreduce-2) echo "--max-bytes 256M --seconds 0.15 --passes 3 --warmup 2" ;;
    *) echo "--max-bytes 32M --seconds 0.12 --passes 3 --warmup 2" ;;
  esac
}

failed=
wrong=

# Runs kolo-bench with what it is given, its table in the log; says what went wrong, and goes on.
measure() {
  echo "kolo-bench $*" >>"$log"
  code=0
  "$bench" "$@" >>"$log" 2>&1 || code=$?
  echo >>"$log"
  case "$code" in
    0) ;;
    3) wrong="$wrong $1"; say "kolo-bench $*: results were wrong; whose is in $log" ;;
    130 | 143) exit "$code" ;; # interrupted
    *) failed="$failed $1"; say "kolo-bench $*: exit code $code: $(tail -n 2 "$log" | head -n 1)" ;;
  esac
}

began=$(date +%s)
if [ "$quick" = yes ]; then
  measure limits --quick --json "$out/limits.jsonl"
else
  measure limits --json "$out/limits.jsonl"
fi
for transport in $transports; do
  for ranks in 2 4; do
    for collective in $collectives; do
      say "$(($(date +%s) - began)) s: $collective over $transport, $ranks ranks"
      # shellcheck disable=SC2046  # words
      set -- "$collective" --ranks "$ranks" --transport "$transport" $(effort "$collective" "$ranks") \
        --json "$out/$transport-$ranks-ranks.jsonl"
      [ "$against" = none ] || set -- "$@" --against "$against"
      measure "$@"
    done
  done
done
seconds=$(($(date +%s) - began))

set --
for transport in $transports; do
  for ranks in 2 4; do
    file=$out/$transport-$ranks-ranks.jsonl
    [ ! -s "$file" ] || set -- "$@" "$file"
  done
done
[ $# -gt 0 ] || { say "nothing was measured; see $log"; exit 1; }
pictures=$("$bench" plot --overview "$@" --out "$out") || { failed="$failed plot"; pictures=; }
python3 "$root/bench/results/tables.py" --seconds "$seconds" --pictures "$pictures" "$@" >"$out/README.md" ||
  failed="$failed tables"

say "$seconds s; the tables are in $out/README.md"
[ -z "$failed" ] || { say "these failed:$failed; see $log"; exit 1; }
[ -z "$wrong" ] || exit 3
