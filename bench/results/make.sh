#!/bin/sh
# Measures kolo's collectives over shared memory and TCP beside the peers that are installed, and writes the results with
# tables and plots, in one command.
#
#   bench/results/make.sh [--out DIR] [--against PEERS] [--install] [--quick] [--bench PROGRAM]
#
#   --out DIR         where to; else bench/results/DATE-N-cores. It may be there, but without results in it
#   --against PEERS   a list as kolo-bench takes it, or none; else gloo, mpich, mpich_ofi, openmpi and openmpi:ucx, those of the build, and
#                     openmpi:ring for all_reduce
#   --install         installs the peers first (cmake/setup.sh --with peers)
#   --quick           few sizes, few iterations, no peers, the other collectives than all_reduce only over shm with 2 ranks: half a
#                     minute, to see that it works; no figures to quote
#   --bench PROGRAM   a kolo-bench that is built; else it is built first
#
# all_reduce, reduce_scatter, all_gather, all_to_all, broadcast and barrier, each over shm and tcp with 2 and with 4 ranks, and, of
# fewer sizes, reduce, gather, scatter, the scans and a parameter server's push, pull and push-pull; messages between 2 ranks;
# all_reduce also of 1 GiB with 2 ranks (where 10 GiB are free), and with 8 and with 16 ranks beside Open MPI alone; kolo alone: four
# of them over shm from buffers of the communicator's, and all_reduce in its other forms (persistent, asynchronous, beside
# computation): some 29 minutes on two idle cores. In DIR: README.md (tables), a PNG each of times and of bandwidths for every
# transport and number of ranks, the rows as JSON lines, limits.jsonl, and output.txt with what kolo-bench printed.
# Exit code 1 where a measurement failed: what could be measured is written all the same; 3 where results were wrong.
set -eu

root=$(cd "$(dirname "$0")/../.." && pwd)
collectives="allreduce reduce_scatter allgather alltoall broadcast barrier"
others="reduce gather scatter scan exclusive_scan push pull push-pull"
transports="shm tcp"
out=
bench=
against=
install=no
quick=no
asked=$*

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
    -h | --help) sed -n '2,21s/^# \{0,1\}//p' "$0"; exit 0 ;;
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

known=
[ "$quick" = yes ] || known=$("$bench" peers)
all=$(printf '%s\n' "$known" | grep -v -e : -e ' ') || all= # without variants, and who works on devices alone

has() { printf '%s\n' "$known" | grep -qx "$1"; }

# Who stands beside kolo between so many ranks, in a collective.
peers_of() {
  if [ -n "$against" ]; then
    echo "$against"
    return
  fi
  list=$all
  ! has openmpi:ucx || list="$list openmpi:ucx"
  case "$1-$2" in 2-allreduce | 4-allreduce) ! has openmpi:ring || list="$list openmpi:ring" ;; esac
  case "$1" in 2 | 4) ;; *) list=$(echo "$list" | tr ' ' '\n' | grep '^openmpi' | tr '\n' ' ') ;; esac
  case "$2" in push | pull | push-pull) list= ;; esac # which no peer has
  # shellcheck disable=SC2086  # words
  set -- $list
  if [ $# -eq 0 ]; then echo none; else (IFS=,; echo "$*"); fi
}

# Sizes and iterations of a collective between so many ranks: large ones cost most.
effort() {
  case "$quick-$1-$2" in
    yes-barrier-*) echo "--iterations 4 --passes 1 --warmup 1" ;;
    yes-*) echo "--min-bytes 64 --max-bytes 64K --factor 32 --iterations 4 --passes 1 --warmup 1" ;;
    no-barrier-*) echo "--seconds 0.5 --passes 3" ;;
    no-allreduce-2) echo "--max-bytes 256M --factor 2 --seconds 0.15 --passes 3 --warmup 2" ;;
    no-allreduce-8 | no-allreduce-16) echo "--max-bytes 8M --factor 256 --seconds 0.4 --passes 3 --warmup 5" ;;
    no-reduce-* | no-gather-* | no-scatter-* | no-*scan-* | no-push-* | no-pull-*)
      echo "--max-bytes 32M --factor 64 --seconds 0.12 --passes 3 --warmup 2" ;;
    no-p2p-*) echo "--max-bytes 8M --factor 64 --seconds 0.12 --passes 3 --warmup 2" ;;
    *) echo "--max-bytes 32M --seconds 0.12 --passes 3 --warmup 2" ;;
  esac
}

largest="--factor 2 --seconds 3 --passes 3 --warmup 1" # where an iteration takes up to a second

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
# FILE TRANSPORT RANKS COLLECTIVE and further options.
rows() {
  file=$out/$1 transport=$2 ranks=$3 collective=$4
  shift 4
  say "$(($(date +%s) - began)) s: $collective over $transport, $ranks ranks $*"
  case "$collective" in
    p2p) kind=$1; shift; set -- p2p "$kind" --transport "$transport" "$@" --json "$file" ;;
    push | pull | push-pull) set -- ps "$collective" --ranks "$ranks" --transport "$transport" "$@" --json "$file" ;;
    *) set -- "$collective" --ranks "$ranks" --transport "$transport" "$@" --json "$file" ;;
  esac
  case " $* " in *" --allocated "* | *" --form "* | *" --overlap "*) peers=none ;; *) peers=$(peers_of "$ranks" "$collective") ;; esac
  [ "$peers" = none ] || set -- "$@" --against "$peers"
  measure "$@"
}

free_kb=$(sed -n 's/^MemAvailable: *\([0-9]*\) kB$/\1/p' /proc/meminfo)
has_room=no
[ "${free_kb:-0}" -lt 10485760 ] || has_room=yes
# shellcheck disable=SC2046,SC2086  # words
for over in $transports; do
  for size in 2 4; do
    whole="$collectives $others"
    case "$quick-$over-$size" in no-* | yes-shm-2) ;; *) whole=allreduce ;; esac
    for what in $whole; do
      rows "$over-$size-ranks.jsonl" "$over" "$size" "$what" $(effort "$what" "$size")
      case "$quick-$has_room-$what-$size" in
        no-yes-allreduce-2) rows "$over-2-ranks.jsonl" "$over" 2 allreduce --min-bytes 1G --max-bytes 1G $largest ;;
        no-*-allreduce-4) rows "$over-4-ranks.jsonl" "$over" 4 allreduce --min-bytes 256M --max-bytes 256M $largest ;;
      esac
    done
  done
  for what in latency bandwidth bidirectional message-rate; do
    rows "$over-messages.jsonl" "$over" 2 p2p "$what" $(effort p2p 2)
  done
  for size in 8 16; do
    rows "$over-$size-ranks.jsonl" "$over" "$size" allreduce $(effort allreduce "$size")
  done
done
# shellcheck disable=SC2046  # words
for what in allreduce allgather alltoall broadcast; do
  rows shm-2-ranks-allocated.jsonl shm 2 "$what" $(effort "$what" 2 | sed '/--min/!s/^/--min-bytes 8K /') --allocated
done
# shellcheck disable=SC2046  # words
for over in $transports; do
  for form in "--form persistent" "--form async" "--overlap"; do
    # shellcheck disable=SC2086  # words
    rows "$over-2-ranks-forms.jsonl" "$over" 2 allreduce $(effort push 2) $form
  done
done
seconds=$(($(date +%s) - began))

set --
for transport in $transports; do
  for ranks in 2-ranks 2-ranks-allocated 2-ranks-forms 4-ranks 8-ranks 16-ranks; do
    file=$out/$transport-$ranks.jsonl
    [ ! -s "$file" ] || set -- "$@" "$file"
  done
done
[ $# -gt 0 ] || { say "nothing was measured; see $log"; exit 1; }
pictures=$("$bench" plot --overview "$@" --out "$out") || { failed="$failed plot"; pictures=; }
[ "$quick" = no ] || set -- --trial "$@"
for transport in $transports; do # which have tables alone
  file=$out/$transport-messages.jsonl
  [ ! -s "$file" ] || set -- "$@" "$file"
done
python3 -B "$root/bench/results/tables.py" --made-by "\`bench/results/make.sh${asked:+ $asked}\` in $seconds s" \
  --pictures "$pictures" "$@" >"$out/README.md" || failed="$failed tables"

say "$seconds s; the tables are in $out/README.md"
[ -z "$failed" ] || { say "these failed:$failed; see $log"; exit 1; }
[ -z "$wrong" ] || exit 3
