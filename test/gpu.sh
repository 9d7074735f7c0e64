#!/bin/sh
# Tests and benchmarks of everything that runs on NVIDIA devices, in one command, on a machine with a device.
#
#   test/gpu.sh [--deps DIR] [--out DIR] [--jobs N] [--quick]
#
#   --deps DIR   folder from cmake/collect_deps.sh, on a machine without packages; default: $KOLO_DEPS
#   --out DIR    folder of the results; default: bench/results
#   --jobs N     parallel compilers; default: one per core
#   --quick      benchmarks of one small size, to check that all works; not for publication
#
# Needs nvcc, CMake (3.25 or later), ninja, a driver and a device; no network. Builds the preset cuda without train/, then runs:
# the tests of the label gpu (a skipped test is a failure, unless it needs several devices); the same under memcheck and racecheck
# of compute-sanitizer, if that is installed; kolo-device-bench; and kolo-bench --device cuda with two ranks on one device, compared
# with gloo and NCCL if they are installed. Writes OUT/DATE-gpu-NAME.md and .jsonl, both or neither: command, device, driver, versions,
# commit, test results, tables, and the performance targets with the measured values. A step is ended after 10 minutes. If a step
# fails after the build, the others still run, and the page begins with what failed or was left out.
#
# CMAKE_CUDA_ARCHITECTURES is taken from the environment (CUDAARCHS); default: that of the device.
# Exit codes: 0 all passed, results written; 1 a step failed (reported by name; results written unless it was the build); 2 a wrong
# option, or no device.
set -eu
asked="test/gpu.sh $*"
here=$(pwd)
cd "$(dirname "$0")/.."
self=test/$(basename "$0")

say() { echo "gpu.sh: $*" >&2; }
refuse() { say "$*"; exit 2; }

case ${KOLO_DEPS-} in "" | /*) deps=${KOLO_DEPS-} ;; *) deps=$here/$KOLO_DEPS ;; esac
out=bench/results
jobs=$(nproc)
sizes=64M,256M,1G
iterations=21
largest=256M
message=64M
replayed=8,64,512,4K,32K,64K,1M,16M
seconds=0.5
while [ $# -gt 0 ]; do
  case "$1" in
    --deps | --out | --jobs)
      if [ $# -lt 2 ] || [ -z "$2" ]; then refuse "$1 needs a value; see $0 --help"; fi
      case "$1:$2" in --jobs:* | *:/*) value=$2 ;; *) value=$here/$2 ;; esac
      case "$1" in --deps) deps=$value ;; --out) out=$value ;; --jobs) jobs=$value ;; esac
      shift 2 ;;
    --quick) sizes=4M iterations=5 largest=1M message=1M replayed=8,64K seconds=0.1; shift ;;
    -h | --help) sed -n '2,20s/^# \{0,1\}//p' "$self"; exit 0 ;;
    *) refuse "unknown option '$1'; see $0 --help" ;;
  esac
done

nvcc=$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null) || nvcc=""

# Name, driver and compute capability of the device from the CUDA runtime, for containers without nvidia-smi.
ask_driver() {
  probe=$(mktemp -d)
  cat >"$probe/device.cu" <<'END'
#include <cuda_runtime.h>
#include <cstdio>
int main() {
  int count = 0, version = 0;
  cudaDeviceProp device;
  cudaError_t error = cudaGetDeviceCount(&count);
  if (error == cudaSuccess) error = cudaGetDeviceProperties(&device, 0);
  if (error == cudaSuccess) error = cudaDriverGetVersion(&version);
  if (error != cudaSuccess) return std::puts(cudaGetErrorString(error)), 1;
  std::printf("%s, of CUDA %d.%d, %d.%d\n", device.name, version / 1000, version % 1000 / 10, device.major, device.minor);
}
END
  status=0
  "$nvcc" -o "$probe/device" "$probe/device.cu" >"$probe/said" 2>&1 && "$probe/device" >"$probe/said" 2>&1 || status=$?
  device=$(tail -n 1 "$probe/said")
  rm -rf "$probe"
  return "$status"
}

if command -v nvidia-smi >/dev/null 2>&1; then
  device=$(nvidia-smi --query-gpu=name,driver_version,compute_cap --format=csv,noheader 2>/dev/null | head -n 1) || device=""
  [ -n "$device" ] || refuse "no device here: nvidia-smi finds none; is one there, and visible in this container?"
else
  [ -n "$nvcc" ] || refuse "no device here: there is neither nvidia-smi nor nvcc; run this on a machine with a device"
  ask_driver || refuse "no device here: there is no nvidia-smi, and a test program built with nvcc reports '$device'; run this on a machine with a device"
fi
name=$(echo "$device" | cut -d, -f1 | tr 'A-Z ' 'a-z-' | sed 's/^nvidia-//; s/[^a-z0-9-]//g')
architecture=${CUDAARCHS:-$(echo "$device" | cut -d, -f3 | tr -d ' .')}
[ -n "$nvcc" ] || refuse "no nvcc in the PATH or in /usr/local/cuda/bin"
for tool in cmake ninja; do
  command -v "$tool" >/dev/null 2>&1 || refuse "no $tool in the PATH"
done
cmake=$(cmake --version | sed -n '1s/cmake version //p')
echo "$cmake" | awk -F. '{ exit !($1 > 3 || ($1 == 3 && $2 >= 25)) }' || refuse "CMake $cmake is too old; 3.25 or later is needed"

mkdir -p "$out" || refuse "--out $out: cannot make that folder"
result=$out/$(date -u +%Y-%m-%d)-gpu-$name
build=build/cuda
scratch=$(mktemp -d "$out/.gpu.XXXXXX") || refuse "--out $out: cannot write there"
trap 'rm -rf "$scratch"' EXIT
trap 'exit 1' HUP INT TERM

miss() {
  say "failed: $1 (above; $2)"
  echo "$1 ($2)" >>"$scratch/failed"
}
leave_out() {
  say "$*: left out"
  echo "$*" >>"$scratch/left_out"
}

# step NAME COMMAND...: runs a command with its output in a file; sets `status` to the exit code. On failure it prints the last lines.
step() {
  what=$1
  shift
  say "$what: $*"
  status=0
  timeout --kill-after=10 600 "$@" >"$scratch/output" 2>&1 || status=$?
  cat "$scratch/output" >>"$scratch/log"
  [ "$status" -eq 0 ] && return
  tail -n 40 "$scratch/output" >&2
  case $status in 124 | 137) miss "$what" "ended after 10 minutes" ;; *) miss "$what" "exit code $status" ;; esac
}

# need NAME COMMAND...: a step that all later ones depend on; ends the script if it fails.
need() {
  step "$@"
  [ "$status" -eq 0 ] || exit 1
}

if commit=$(git rev-parse --short=12 HEAD 2>/dev/null); then
  git diff --quiet HEAD || commit="$commit, changed"
else
  commit=unknown
fi

need configure cmake --preset cuda -D KOLO_BUILD_TRAIN=OFF -D KOLO_INSTALL=OFF -D "CMAKE_CUDA_ARCHITECTURES=$architecture" \
  -D "CMAKE_CUDA_COMPILER=$nvcc" -D KOLO_WERROR=OFF ${deps:+-D "KOLO_DEPS=$deps"}
need build cmake --build --preset cuda --parallel "$jobs" --target collectives_device_kernels collectives_device_streams \
  collectives_device_processes collectives_device_pass kolo-conformance kolo-device-bench kolo-bench

# The tests of the label gpu are Catch2 programs. Each runs as one process here, so that CUDA starts once per program.
programs="collectives_device_kernels collectives_device_streams collectives_device_processes"
for program in $programs; do
  step "tests of $program" "$build/bin/$program" '~without a device*'
  ! grep 'skipped: ' "$scratch/output" | grep -v -e 'skipped: one device here' -e 'skipped: no peer access here' >"$scratch/skipped" || {
    sort "$scratch/skipped" | uniq -c >&2
    miss "tests of $program" "some were skipped on a machine that has a device"
  }
  grep 'skipped: ' "$scratch/output" | sort | uniq -c | sed 's/^ *\([0-9]*\) */    \1 /' >>"$scratch/tests"
  tail -n 3 "$scratch/output" | sed "s/^/    /" >>"$scratch/tests"
done
step "tests of the kernels' text on the host" "$build/bin/collectives_device_pass"
step "conformance of cuda_ipc" "$build/bin/kolo-conformance" --transport cuda_ipc
tail -n 1 "$scratch/output" | sed "s/^/    /" >>"$scratch/tests"

sanitizer=$(command -v compute-sanitizer || ls "$(dirname "$nvcc")/compute-sanitizer" 2>/dev/null || true)
if [ -n "$sanitizer" ]; then
  # Each kernel with all alignments; without the pairs of all 8-bit floats, which only take longer.
  # No API errors: kolo probes the driver's abilities with calls that may fail.
  for tool in "memcheck --report-api-errors no" racecheck; do
    of_tool="no errors"
    for program in $programs; do
      # shellcheck disable=SC2086  # a tool and its options
      step "${tool%% *} of $program" "$sanitizer" --tool $tool --target-processes all --error-exitcode 9 "$build/bin/$program" \
        'kernels of the device*,ranks that share a device*'
      [ "$status" -eq 0 ] || of_tool="failed"
    done
    echo "compute-sanitizer ${tool%% *}: $of_tool" >>"$scratch/sanitizers"
  done
else
  leave_out "memcheck and racecheck: compute-sanitizer is not installed here"
  echo "compute-sanitizer: not installed on this machine, not run" >>"$scratch/sanitizers"
fi

step benchmark "$build/bin/kolo-device-bench" --bytes "$sizes" --iterations "$iterations" --json "$scratch/rows.jsonl"
cp "$scratch/output" "$scratch/table"

# Two ranks share a single device; NCCL does not support that and is left out with a message.
peers=$("$build/bin/kolo-bench" peers | cut -d " " -f 1 | grep -x -e gloo -e nccl | paste -s -d , -)
for peer in gloo nccl; do
  why=$(sed -n "s/^-- kolo: peer '$peer' left out: //p" "$scratch/log" | tail -n 1)
  case ",$peers," in *",$peer,"*) ;; *) leave_out "figures beside $peer: ${why:-it is not in this build}" ;; esac
done
for transport in cuda_ipc shm; do
  step "collectives over $transport" "$build/bin/kolo-bench" allreduce --device cuda --ranks 2 --transport "$transport" --max-bytes "$largest" \
    --factor 8 --seconds "$seconds" --json "$scratch/rows.jsonl" ${peers:+--against "$peers"}
  cat "$scratch/output" >>"$scratch/collectives"
done
step "replays over cuda_ipc" "$build/bin/kolo-bench" allreduce --device cuda --ranks 2 --transport cuda_ipc --captured --bytes "$replayed" \
  --seconds "$seconds" --json "$scratch/rows.jsonl"
cp "$scratch/output" "$scratch/replays"
for transport in cuda_ipc shm; do
  for kind in latency bandwidth bidirectional; do
    step "p2p $kind over $transport" "$build/bin/kolo-bench" p2p "$kind" --device cuda --transport "$transport" --max-bytes "$message" \
      --factor 8 --seconds "$seconds" --json "$scratch/rows.jsonl" ${peers:+--against "$peers"}
    cat "$scratch/output" >>"$scratch/messages"
  done
done
for collective in broadcast allgather reduce_scatter alltoall "ps push-pull" "ps push-pull --servers 1"; do
  # shellcheck disable=SC2086  # of several words
  step "$collective over cuda_ipc" "$build/bin/kolo-bench" $collective --device cuda --ranks 2 --transport cuda_ipc --max-bytes "$largest" \
    --factor 8 --seconds "$seconds" --json "$scratch/rows.jsonl"
  cat "$scratch/output" >>"$scratch/collectives"
done

# A killed program may leave an incomplete row.
grep '^{.*}$' "$scratch/rows.jsonl" >"$scratch/whole.jsonl" 2>/dev/null || :

{
  echo "# $(echo "$device" | cut -d, -f1): device kernels and collectives, $(date -u +%Y-%m-%d)"
  echo
  echo "Made by \`$asked\`, commit $commit."
  echo
  if [ -e "$scratch/failed" ]; then
    printf '**These steps failed**, and what they were to show is not here, or not whole:\n\n'
    sed 's/^/- /' "$scratch/failed"
    echo
  fi
  if [ -e "$scratch/left_out" ]; then
    printf 'Left out:\n\n'
    sed 's/^/- /' "$scratch/left_out"
    echo
  fi
  echo "| what | |"
  echo "|---|---|"
  echo "| device, driver, compute capability | $device |"
  echo "| built for | $architecture |"
  echo "| nvcc | $("$nvcc" --version | tail -n 2 | head -n 1) |"
  echo "| CMake | $cmake |"
  echo "| kernel | $(uname -sr) |"
  echo
  echo "Performance targets, and the worst measured value of each:"
  echo
  awk -f test/gpu_aims.awk "$scratch/whole.jsonl"
  echo
  echo "Tests of the label gpu; only tests that need several devices may be skipped:"
  echo
  cat "$scratch/tests"
  echo
  sed 's/$/  /' "$scratch/sanitizers"
  echo
  echo "Kernels compared with the device's own copy, in alternation on one stream (\`bench/README.md\`: kolo-device-bench):"
  echo
  sed 's/^/    /' "$scratch/table"
  echo
  echo "Collectives of two ranks on the memory of the device, over cuda_ipc, and all-reduce staged through shm, too (\`bench/README.md\`: on the memory of devices):"
  echo
  sed 's/^/    /' "$scratch/collectives"
  echo
  echo "All-reduce of two ranks, enqueued on a stream and (lines \`captured\`) launched again and again from a CUDA graph; below each the host's time (\`bench/README.md\`: on the memory of devices):"
  echo
  sed 's/^/    /' "$scratch/replays"
  echo
  echo "Messages of two ranks on the memory of the device, over cuda_ipc and staged through shm (\`bench/README.md\`: two ranks):"
  echo
  sed 's/^/    /' "$scratch/messages"
} >"$scratch/page.md"
mv "$scratch/whole.jsonl" "$result.jsonl"
mv "$scratch/page.md" "$result.md"
if [ -e "$scratch/failed" ]; then
  say "failed steps (also in $result.md):"
  sed 's/^/  /' "$scratch/failed" >&2
  exit 1
fi
say "all passed; $result.md and $result.jsonl"
