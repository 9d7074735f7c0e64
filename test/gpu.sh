#!/bin/sh
# Proves and measures what runs on NVIDIA's devices, on a machine that has one, in one command.
#
#   test/gpu.sh [--deps DIR] [--out DIR] [--jobs N] [--quick]
#
#   --deps DIR   what cmake/collect_deps.sh has filled, where there are no packages; else $KOLO_DEPS
#   --out DIR    where the results go; else bench/results
#   --jobs N     compilers at a time; else one for a core
#   --quick      a benchmark of one small size: to see that it works; no figures to quote
#
# Needs nvcc, CMake and ninja, a driver and a device; no network. Builds the preset cuda without train/, runs the tests of the label gpu
# (one that is skipped here is a failure, unless it needs several devices), runs them once more under compute-sanitizer's memcheck and
# racecheck where that is installed, and measures with kolo-device-bench and kolo-bench --device cuda, the latter with two ranks that share the device, and beside
# gloo and NCCL as far as they are there. Writes OUT/DATE-gpu-NAME.md and .jsonl, both or neither: command, device, driver,
# versions, commit, what ran, the table. No step takes longer than 10 minutes.
#
# CMAKE_CUDA_ARCHITECTURES comes from the environment (CUDAARCHS) or is that of the device found.
# Exit codes: 0 all passed and is written; 1 a step failed (said by name); 2 a wrong option, or no device.
set -eu
asked="test/gpu.sh $*"
here=$(pwd)
cd "$(dirname "$0")/.."

say() { echo "gpu.sh: $*" >&2; }
refuse() { say "$*"; exit 2; }

deps=${KOLO_DEPS-}
out=bench/results
jobs=$(nproc)
sizes=64M,256M,1G
iterations=21
largest=256M
seconds=0.5
while [ $# -gt 0 ]; do
  case "$1" in
    --deps | --out | --jobs)
      if [ $# -lt 2 ] || [ -z "$2" ]; then refuse "$1 needs a value; see $0 --help"; fi
      case "$1:$2" in --jobs:* | *:/*) value=$2 ;; *) value=$here/$2 ;; esac
      case "$1" in --deps) deps=$value ;; --out) out=$value ;; --jobs) jobs=$value ;; esac
      shift 2 ;;
    --quick) sizes=4M iterations=5 largest=1M seconds=0.1; shift ;;
    -h | --help) sed -n '2,18s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) refuse "unknown option '$1'; see $0 --help" ;;
  esac
done

command -v nvidia-smi >/dev/null 2>&1 ||
  refuse "no device here: there is no nvidia-smi, so no NVIDIA driver; run this on the machine that has the card"
device=$(nvidia-smi --query-gpu=name,driver_version,compute_cap --format=csv,noheader 2>/dev/null | head -n 1) || device=""
[ -n "$device" ] || refuse "no device here: nvidia-smi finds none; is one there, and visible in this container?"
name=$(echo "$device" | cut -d, -f1 | tr 'A-Z ' 'a-z-' | sed 's/^nvidia-//; s/[^a-z0-9-]//g')
architecture=${CUDAARCHS:-$(echo "$device" | cut -d, -f3 | tr -d ' .')}
nvcc=$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null) || refuse "no nvcc in the PATH or in /usr/local/cuda/bin"
for tool in cmake ninja ctest; do
  command -v "$tool" >/dev/null 2>&1 || refuse "no $tool in the PATH"
done

mkdir -p "$out" || refuse "--out $out: cannot make that folder"
result=$out/$(date -u +%Y-%m-%d)-gpu-$name
build=build/cuda
scratch=$(mktemp -d "$out/.gpu.XXXXXX") || refuse "--out $out: cannot write there"
trap 'rm -rf "$scratch"' EXIT
trap 'exit 1' HUP INT TERM

# step NAME COMMAND...: its output to a file, the end of which is shown where it fails.
step() {
  what=$1
  shift
  say "$what: $*"
  status=0
  timeout --kill-after=10 600 "$@" >"$scratch/output" 2>&1 || status=$?
  cat "$scratch/output" >>"$scratch/log"
  [ "$status" -eq 0 ] && return
  tail -n 40 "$scratch/output" >&2
  [ "$status" -ne 124 ] || say "it was ended after 10 minutes"
  say "failed: $what (above; exit code $status)"
  exit 1
}

if commit=$(git rev-parse --short=12 HEAD 2>/dev/null); then
  git diff --quiet HEAD || commit="$commit, changed"
else
  commit=unknown
fi

step configure cmake --preset cuda -D KOLO_BUILD_TRAIN=OFF -D KOLO_INSTALL=OFF -D "CMAKE_CUDA_ARCHITECTURES=$architecture" \
  -D "CMAKE_CUDA_COMPILER=$nvcc" ${deps:+-D "KOLO_DEPS=$deps"}
step build cmake --build --preset cuda --parallel "$jobs" --target collectives_device_kernels collectives_device_streams \
  collectives_device_processes collectives_device_pass kolo-conformance kolo-device-bench kolo-bench

# The tests of the label gpu are programs of Catch2; here they run whole, so that CUDA starts once for each.
programs="collectives_device_kernels collectives_device_streams collectives_device_processes"
for program in $programs; do
  step "tests of $program" "$build/bin/$program" '~without a device*'
  ! grep 'skipped: ' "$scratch/output" | grep -v -e 'skipped: one device here' -e 'skipped: no peer access here' >"$scratch/skipped" || {
    sort "$scratch/skipped" | uniq -c >&2
    say "failed: tests were skipped on a machine that has a device ($device)"
    exit 1
  }
  grep 'skipped: ' "$scratch/output" | sort | uniq -c | sed 's/^ *\([0-9]*\) */    \1 /' >>"$scratch/tests"
  tail -n 3 "$scratch/output" | sed "s/^/    /" >>"$scratch/tests"
done
step "tests of the kernels' text on the host" "$build/bin/collectives_device_pass"
step "conformance of cuda_ipc" "$build/bin/kolo-conformance" --transport cuda_ipc
tail -n 1 "$scratch/output" | sed "s/^/    /" >>"$scratch/tests"

sanitizer=$(command -v compute-sanitizer || ls "$(dirname "$nvcc")/compute-sanitizer" 2>/dev/null || true)
if [ -n "$sanitizer" ]; then
  # Each kernel at all its alignments; pairs of all 8-bit floats add nothing to that but time.
  for tool in memcheck racecheck; do
    for program in $programs; do
      step "$tool of $program" "$sanitizer" --tool "$tool" --target-processes all --error-exitcode 9 "$build/bin/$program" \
        'kernels of the device*,ranks that share a device*'
    done
    echo "compute-sanitizer $tool: no errors" >>"$scratch/sanitizers"
  done
else
  say "compute-sanitizer is not installed here: left out"
  echo "compute-sanitizer: not installed on this machine, not run" >>"$scratch/sanitizers"
fi

step benchmark "$build/bin/kolo-device-bench" --bytes "$sizes" --iterations "$iterations" --json "$scratch/rows.jsonl"
cp "$scratch/output" "$scratch/table"

# Two ranks: with one device they share it, which NCCL leaves out by itself, saying so.
peers=$("$build/bin/kolo-bench" peers | cut -d " " -f 1 | grep -x -e gloo -e nccl | paste -s -d , -)
for transport in cuda_ipc shm; do
  step "collectives over $transport" "$build/bin/kolo-bench" allreduce --device cuda --ranks 2 --transport "$transport" --max-bytes "$largest" \
    --factor 8 --seconds "$seconds" --json "$scratch/rows.jsonl" ${peers:+--against "$peers"}
  cat "$scratch/output" >>"$scratch/collectives"
done
for collective in broadcast allgather reduce_scatter alltoall push_pull; do
  step "$collective over cuda_ipc" "$build/bin/kolo-bench" "$collective" --device cuda --ranks 2 --transport cuda_ipc --max-bytes "$largest" \
    --factor 8 --seconds "$seconds" --json "$scratch/rows.jsonl"
  cat "$scratch/output" >>"$scratch/collectives"
done

{
  echo "# $(echo "$device" | cut -d, -f1): device kernels and collectives, $(date -u +%Y-%m-%d)"
  echo
  echo "Made by \`$asked\`, commit $commit."
  echo
  echo "| what | |"
  echo "|---|---|"
  echo "| device, driver, compute capability | $device |"
  echo "| built for | $architecture |"
  echo "| nvcc | $("$nvcc" --version | tail -n 2 | head -n 1) |"
  echo "| CMake | $(cmake --version | head -n 1 | sed 's/cmake version //') |"
  echo "| kernel | $(uname -sr) |"
  echo
  echo "Tests of the label gpu, none skipped but what needs several devices, as counted here:"
  echo
  cat "$scratch/tests"
  echo
  sed 's/$/  /' "$scratch/sanitizers"
  echo
  echo "Kernels beside the device's own copy, in turn in one stream (\`bench/README.md\`: kolo-device-bench):"
  echo
  sed 's/^/    /' "$scratch/table"
  echo
  echo "Collectives of two ranks on the memory of the device, over cuda_ipc, and all-reduce staged through shm, too (\`bench/README.md\`: on the memory of devices):"
  echo
  sed 's/^/    /' "$scratch/collectives"
} >"$scratch/page.md"
mv "$scratch/rows.jsonl" "$result.jsonl"
mv "$scratch/page.md" "$result.md"
say "all passed; $result.md and $result.jsonl"
