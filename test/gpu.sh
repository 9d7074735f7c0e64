#!/bin/sh
# Tests and benchmarks of everything that runs on NVIDIA devices, on a machine with a device.
#
#   test/gpu.sh [--only STEPS] [--within SECONDS] [--out DIR] [--deps DIR] [--jobs N] [--quick]
#
#   --only STEPS      some of build,tests,bench,sanitize; default: all, in this order
#   --within SECONDS  ends by then; what does not fit is listed as "left out: no time"
#   --out DIR         folder of the results; default: bench/results
#   --deps DIR        folder from cmake/collect_deps.sh, on a machine without packages; default: $KOLO_DEPS
#   --jobs N          parallel compilers; default: one per core
#   --quick           benchmarks of one small size, to check that all works; not for publication
#
# Needs nvcc, CMake (3.25 or later), ninja, a driver and a device; no network. The steps:
#
#   build     the preset cuda, without train/
#   tests     the tests of the label gpu, ranks as processes first, and conformance of cuda_ipc; a
#             skipped test is a failure, unless it needs several devices
#   bench     kolo-device-bench; kolo-bench --device cuda with two ranks on one device, beside gloo
#             and NCCL if they are installed
#   sanitize  memcheck of compute-sanitizer, if that is installed
#
# Writes OUT/DATE-gpu-NAME.md (device, versions, commit, test results, tables, performance targets),
# .jsonl (rows of benchmarks) and .log (all output), anew after every part, so that they are whole
# whenever the script is killed. Later calls for the same commit and device add to the same page. A
# part ends after 120 s (the build: only by --within), and the others still run. The page begins
# with what failed, was left out, or has not run.
#
# CMAKE_CUDA_ARCHITECTURES is taken from the environment (CUDAARCHS); default: that of the device.
# KOLO_COMMIT names the commit where there is no .git folder.
# Exit codes: 0 all passed; 1 a part failed; 2 a wrong option, or no device; 3 none failed, but some
# were left out: no time, or the device takes one process only.
set -eu
asked="test/gpu.sh $*"
began=$(date +%s)
here=$(pwd)
cd "$(dirname "$0")/.."
self=test/$(basename "$0")

say() { echo "gpu.sh: $*" >&2; }
refuse() { say "$*"; exit 2; }

case ${KOLO_DEPS-} in "" | /*) deps=${KOLO_DEPS-} ;; *) deps=$here/$KOLO_DEPS ;; esac
out=bench/results
jobs=$(nproc)
only=build,tests,bench,sanitize
within=
sizes=64M,256M
iterations=21
largest=256M
message=64M
replayed=8,64,512,4K,32K,64K,1M,16M
seconds=0.5
while [ $# -gt 0 ]; do
  case "$1" in
    --deps | --out | --jobs | --only | --within)
      if [ $# -lt 2 ] || [ -z "$2" ]; then refuse "$1 needs a value; see $0 --help"; fi
      case "$1:$2" in --out:/* | --deps:/*) value=$2 ;; --out:* | --deps:*) value=$here/$2 ;; *) value=$2 ;; esac
      case "$1" in --deps) deps=$value ;; --out) out=$value ;; --jobs) jobs=$value ;; --only) only=$value ;; --within) within=$value ;; esac
      shift 2 ;;
    --quick) sizes=4M iterations=5 largest=1M message=1M replayed=8,64K seconds=0.1; shift ;;
    -h | --help) sed -n '2,36s/^# \{0,1\}//p' "$self"; exit 0 ;;
    *) refuse "unknown option '$1'; see $0 --help" ;;
  esac
done
for group in $(echo "$only" | tr , ' '); do
  case $group in build | tests | bench | sanitize) ;; *) refuse "--only $only: there is no step '$group'; there are build, tests, bench and sanitize" ;; esac
done
is_asked() { case ",$only," in *",$1,"*) ;; *) return 1 ;; esac; }
for number in "$within" "$jobs"; do
  case $number in *[!0-9]*) refuse "'$number' is no number; --within takes seconds, --jobs a number of compilers" ;; esac
done

nvcc=$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null) || nvcc=""

# Name, driver, compute capability and compute mode of the device from the CUDA runtime, for
# containers without nvidia-smi.
ask_driver() {
  probe=$(mktemp -d)
  cat >"$probe/device.cu" <<'CODE'
#include <cuda_runtime.h>
#include <cstdio>
int main() {
  int count = 0, version = 0, mode = 0;
  cudaDeviceProp device;
  cudaError_t error = cudaGetDeviceCount(&count);
  if (error == cudaSuccess) error = cudaGetDeviceProperties(&device, 0);
  if (error == cudaSuccess) error = cudaDriverGetVersion(&version);
  if (error == cudaSuccess) error = cudaDeviceGetAttribute(&mode, cudaDevAttrComputeMode, 0);
  if (error != cudaSuccess) return std::puts(cudaGetErrorString(error)), 1;
  const char* modes[] = {"Default", "Exclusive_Thread", "Prohibited", "Exclusive_Process"};
  std::printf("%s, of CUDA %d.%d, %d.%d, %s\n", device.name, version / 1000, version % 1000 / 10, device.major, device.minor, modes[mode & 3]);
}
CODE
  status=0
  "$nvcc" -o "$probe/device" "$probe/device.cu" >"$probe/said" 2>&1 && "$probe/device" >"$probe/said" 2>&1 || status=$?
  device=$(tail -n 1 "$probe/said")
  rm -rf "$probe"
  return "$status"
}

if command -v nvidia-smi >/dev/null 2>&1; then
  device=$(nvidia-smi --query-gpu=name,driver_version,compute_cap,compute_mode --format=csv,noheader 2>/dev/null | head -n 1) || device=""
  [ -n "$device" ] || refuse "no device here: nvidia-smi finds none; is one there, and visible in this container?"
else
  [ -n "$nvcc" ] || refuse "no device here: there is neither nvidia-smi nor nvcc; run this on a machine with a device"
  ask_driver || refuse "no device here: there is no nvidia-smi, and a test program built with nvcc reports '$device'; run this on a machine with a device"
fi
# Without persistence mode the driver shuts the device down when no process has it open, and the next
# one waits for 1 to 3 s.
if [ -r /dev/nvidia0 ]; then exec 9</dev/nvidia0; fi
name=$(echo "$device" | cut -d, -f1 | tr 'A-Z ' 'a-z-' | sed 's/^nvidia-//; s/[^a-z0-9-]//g')
mode=$(echo "$device" | cut -d, -f4 | tr -d ' ')
case $mode in
  Prohibited) refuse "the device's compute mode is Prohibited: no process can use it; nvidia-smi -c DEFAULT changes that" ;;
  Exclusive*) alone="the device's compute mode is $mode, which allows one process; nvidia-smi -c DEFAULT changes that" ;;
  *) alone= ;;
esac
architecture=${CUDAARCHS:-$(echo "$device" | cut -d, -f3 | tr -d ' .')}
[ -n "$nvcc" ] || refuse "no nvcc in the PATH or in /usr/local/cuda/bin"
for tool in cmake ninja; do
  command -v "$tool" >/dev/null 2>&1 || refuse "no $tool in the PATH"
done
nvcc_version=$("$nvcc" --version | tail -n 2 | head -n 1)
cmake=$(cmake --version | sed -n '1s/cmake version //p')
echo "$cmake" | awk -F. '{ exit !($1 > 3 || ($1 == 3 && $2 >= 25)) }' || refuse "CMake $cmake is too old; 3.25 or later is needed"

if commit=$(git -c safe.directory='*' rev-parse --short=12 HEAD 2>/dev/null); then
  git -c safe.directory='*' diff --quiet HEAD || commit="$commit, changed"
else
  commit=${KOLO_COMMIT:-unknown}
fi

mkdir -p "$out" 2>/dev/null || refuse "--out $out: cannot make that folder"
[ -w "$out" ] || refuse "--out $out: cannot write there"
result=$out/$(date -u +%Y-%m-%d)-gpu-$name
log=$result.log
build=build/cuda
if ! is_asked build && [ ! -x "$build/bin/kolo-bench" ]; then
  refuse "--only $only: there is no build yet; run $self --only build first"
fi

# One record per part: GROUP.NUMBER.title, .section, .end (how it ended), .said (its output), .rows.
state=$build/gpu
mkdir -p "$state"
identity="$commit; $device; $architecture"
if [ "$(cat "$state/identity" 2>/dev/null)" != "$identity" ]; then
  rm -f "$state"/*
  echo "$identity" >"$state/identity"
fi
echo "$asked" >>"$state/commands"

# titles KIND: the titles of all parts whose end begins with KIND, with the rest of the end.
titles() {
  for one in "$state"/*.end; do
    [ -e "$one" ] || continue
    read -r end <"$one"
    case $end in
      "$1"*)
        read -r title <"${one%.end}.title"
        echo "- $title (${end#"$1"})" ;;
    esac
  done
}

# section NAME: the output of the parts of a section, in order.
section() {
  for one in "$state"/*.said; do
    [ -e "$one" ] || continue
    read -r its_section <"${one%.said}.section"
    [ "$its_section" != "$1" ] || cat "$one"
  done
}

# heading TEXT SECTION: TEXT and the section as a code block, if it has any output.
heading() {
  text=$(section "$2" | sed 's/^/    /')
  [ -n "$text" ] || return 0
  printf '%s\n\n%s\n\n' "$1" "$text"
}

print_page() {
  echo "# $(echo "$device" | cut -d, -f1): device kernels and collectives, $(date -u +%Y-%m-%d)"
  echo
  echo "Made by these commands, commit $commit:"
  echo
  sed 's/^/    /' "$state/commands"
  echo
  failed=$(titles 'failed: ')
  [ -z "$failed" ] || printf '**These parts failed**, and their results are missing or incomplete:\n\n%s\n\n' "$failed"
  left=$(titles 'left out: '; cat "$state/notes" 2>/dev/null || :)
  [ -z "$left" ] || printf 'Left out:\n\n%s\n\n' "$left"
  for other in build tests bench sanitize; do
    # shellcheck disable=SC2016  # Markdown
    [ -e "$state/$other.01.end" ] || printf '**Not run yet**: `test/gpu.sh --only %s`\n\n' "$other"
  done
  echo "| what | |"
  echo "|---|---|"
  echo "| device, driver, compute capability and mode | $device |"
  echo "| built for | $architecture |"
  echo "| nvcc | $nvcc_version |"
  echo "| CMake | $cmake |"
  echo "| kernel | $(uname -sr) |"
  echo
  echo "Performance targets, and the worst measured value of each:"
  echo
  awk -f test/gpu_aims.awk "$1"
  echo
  echo "Tests of the label gpu; only tests that need several devices may be skipped:"
  echo
  for one in "$state"/tests.*.end "$state"/sanitize.*.end; do
    [ -e "$one" ] || continue
    read -r title <"${one%.end}.title"
    read -r end <"$one"
    echo "- $title: $end"
    ! grep -q 'skipped: ' "${one%.end}.said" 2>/dev/null || grep 'skipped: ' "${one%.end}.said" | sort | uniq -c | sed 's/^ *\([0-9]*\) */    - \1 /'
  done
  echo
  heading "Kernels compared with the device's own copy, in alternation on one stream (\`bench/README.md\`: kolo-device-bench):" kernels
  heading "Collectives of two ranks on the memory of the device, over cuda_ipc, and all-reduce staged through shm, too (\`bench/README.md\`: on the memory of devices):" collectives
  heading "All-reduce of two ranks, enqueued on a stream and (lines \`captured\`) launched again and again from a CUDA graph; below each the host's time:" replays
  heading "Messages of two ranks on the memory of the device, over cuda_ipc and staged through shm:" messages
}

# A killed program may leave an incomplete row.
write_results() {
  cat "$state"/*.rows 2>/dev/null | grep '^{.*}$' >"$result.jsonl.new" || :
  print_page "$result.jsonl.new" >"$result.md.new"
  mv "$result.jsonl.new" "$result.jsonl"
  mv "$result.md.new" "$result.md"
}

finish() {
  echo "$1" >"$record.end"
  case $1 in passed*) ;; *) say "$what: $1" ;; esac
}

child=
record=
# shellcheck disable=SC2317  # called by trap
end_by_signal() {
  trap '' HUP INT TERM
  if [ -n "$child" ]; then
    kill "$child" 2>/dev/null || :
    wait "$child" 2>/dev/null || :
    keep_output
    finish "failed: this script was ended by a signal during it"
  fi
  write_results
  say "ended by a signal; $result.md has the parts before it"
  exit 1
}
trap end_by_signal HUP INT TERM
trap 'rm -f "$result".*.new' EXIT

# The output of the last part, from the log.
keep_output() { tail -c "+$((log_before + 1))" "$log" >"$record.said"; }

# part SECTION TITLE COMMAND...: runs a command as a part of the group in progress, sets `status` and
# `record`, and writes the page. Parts of sections with tables get --json.
part() {
  section=$1 what=$2
  shift 2
  number=$((number + 1))
  record=$state/$group.$(printf %02d "$number")
  echo "$section" >"$record.section"
  echo "$what" >"$record.title"
  case $section in build | tests | sanitizers) ;; *) set -- "$@" --json "$record.rows" ;; esac
  limit=120
  [ "$section" != build ] || limit=86400
  is_cut=
  if [ -n "$within" ]; then
    remaining=$((began + within - $(date +%s) - 8))
    if [ "$remaining" -lt "$limit" ]; then limit=$remaining is_cut=yes; fi
  fi
  status=0
  if [ "$limit" -lt 1 ]; then
    finish "left out: no time"
    status=1
    write_results
    return
  fi
  echo "failed: did not end; this script was killed during it" >"$record.end"
  write_results
  say "$what: $*"
  echo "== $what: $*" >>"$log"
  log_before=$(wc -c <"$log")
  started=$(date +%s)
  timeout --kill-after=5 "$limit" "$@" >>"$log" 2>&1 9>&- &
  child=$!
  wait "$child" || status=$?
  child=
  keep_output
  took="$(($(date +%s) - started)) s"
  case $status in
    0) finish "passed in $took" ;;
    124 | 137)
      if [ -n "$is_cut" ]; then finish "left out: no time, ended after $took"
      elif [ "$section" = sanitizers ]; then finish "left out: did not end under the sanitizer within $took"
      else finish "failed: ended after $took"; fi ;;
    *) tail -n 40 "$record.said" >&2; finish "failed: exit code $status" ;;
  esac
  write_results
}

# with_two_ranks SECTION TITLE COMMAND...: a part whose processes share the device.
with_two_ranks() {
  if [ -z "$alone" ]; then part "$@"; return; fi
  number=$((number + 1))
  record=$state/$group.$(printf %02d "$number")
  what=$2
  echo "$1" >"$record.section"
  echo "$2" >"$record.title"
  finish "left out: $alone"
}

# A skipped test proves nothing on a machine with a device.
refuse_skipped() {
  grep 'skipped: ' "$record.said" 2>/dev/null | grep -v -e 'skipped: one device here' -e 'skipped: no peer access here' >"$state/skipped" || return 0
  sort "$state/skipped" | uniq -c >&2
  finish "failed: some tests were skipped on a machine that has a device"
  write_results
}

# cases PROGRAM FILTER...: every test of a Catch2 program as a part of its own, so that one that
# hangs does not take the others with it.
cases() {
  program=$1
  shift
  "$build/bin/$program" --list-test-names-only "$@" >"$state/cases" 2>/dev/null || :
  [ -s "$state/cases" ] || part tests "tests of $program" "$build/bin/$program" --list-test-names-only "$@"
  while IFS= read -r case; do
    [ -n "$case" ] || continue
    with_two_ranks tests "$program: $case" "$build/bin/$program" "$(echo "$case" | sed 's/,/\\,/g')" </dev/null
    refuse_skipped
  done <"$state/cases"
}

begin_group() {
  group=$1
  number=0
  is_asked "$1" || return 1
  rm -f "$state/$group."*
}

if begin_group build; then
  part build configure cmake --preset cuda -D KOLO_BUILD_TRAIN=OFF -D KOLO_INSTALL=OFF -D "CMAKE_CUDA_ARCHITECTURES=$architecture" \
    -D "CMAKE_CUDA_COMPILER=$nvcc" -D KOLO_WERROR=OFF ${deps:+-D "KOLO_DEPS=$deps"}
  [ "$status" -ne 0 ] || part build build cmake --build --preset cuda --parallel "$jobs" --target collectives_device_kernels \
    collectives_device_streams collectives_device_processes collectives_device_pass transports_device_streams kolo-conformance kolo-device-bench kolo-bench
  if [ "$status" -ne 0 ]; then
    say "there is no build; see $log"
    grep -q '^left out' "$record.end" || exit 1
    exit 3
  fi
fi

# Ranks as processes first: ranks as threads share a context, where a call may wait for all streams.
if begin_group tests; then
  part tests "tests of collectives_device_kernels" "$build/bin/collectives_device_kernels" '~without a device*'
  refuse_skipped
  cases transports_device_streams '~[threads]'
  cases collectives_device_processes '~without a device*'
  with_two_ranks tests "conformance of cuda_ipc, host forms" "$build/bin/kolo-conformance" --transport cuda_ipc
  part tests "tests of the kernels' text on the host" "$build/bin/collectives_device_pass"
  cases transports_device_streams '[threads]'
  cases collectives_device_streams '~without a device*'
fi

if begin_group bench; then
  part kernels "bandwidth of the kernels" "$build/bin/kolo-device-bench" --bytes "$sizes" --iterations "$iterations"
  # Two ranks share a single device; NCCL does not support that and is left out with a message.
  peers=$("$build/bin/kolo-bench" peers | cut -d " " -f 1 | grep -x -e gloo -e nccl | paste -s -d , -) || peers=
  rm -f "$state/notes"
  for peer in gloo nccl; do
    why=$(sed -n "s/^-- kolo: peer '$peer' left out: //p" "$state/build.01.said" 2>/dev/null | tail -n 1)
    case ",$peers," in *",$peer,"*) ;; *) echo "- figures beside $peer: ${why:-it is not in this build}" >>"$state/notes" ;; esac
  done
  for transport in cuda_ipc shm; do
    with_two_ranks collectives "all-reduce over $transport" "$build/bin/kolo-bench" allreduce --device cuda --ranks 2 --transport "$transport" \
      --max-bytes "$largest" --factor 8 --seconds "$seconds" ${peers:+--against "$peers"}
  done
  with_two_ranks replays "replays over cuda_ipc" "$build/bin/kolo-bench" allreduce --device cuda --ranks 2 --transport cuda_ipc --captured \
    --bytes "$replayed" --seconds "$seconds"
  for transport in cuda_ipc shm; do
    for kind in latency bandwidth bidirectional; do
      with_two_ranks messages "p2p $kind over $transport" "$build/bin/kolo-bench" p2p "$kind" --device cuda --transport "$transport" \
        --max-bytes "$message" --factor 8 --seconds "$seconds" ${peers:+--against "$peers"}
    done
  done
  for collective in broadcast allgather reduce_scatter alltoall "ps push-pull" "ps push-pull --servers 1"; do
    # shellcheck disable=SC2086  # of several words
    with_two_ranks collectives "$collective over cuda_ipc" "$build/bin/kolo-bench" $collective --device cuda --ranks 2 --transport cuda_ipc \
      --max-bytes "$largest" --factor 8 --seconds "$seconds"
  done
fi

if begin_group sanitize; then
  sanitizer=$(command -v compute-sanitizer || ls "$(dirname "$nvcc")/compute-sanitizer" 2>/dev/null) || sanitizer=
  if [ -n "$sanitizer" ]; then
    # Each kernel with all alignments; without the pairs of all 8-bit floats, which only take longer.
    # No API errors: kolo probes the driver's abilities with calls that may fail. Streams that wait
    # for a peer may never end under the sanitizer, so the kernels alone come first.
    for program in collectives_device_kernels collectives_device_processes; do
      with_two_ranks sanitizers "memcheck of $program" "$sanitizer" --tool memcheck --report-api-errors no --target-processes all \
        --error-exitcode 9 "$build/bin/$program" 'kernels of the device*,ranks that share a device as processes call every*'
    done
  else
    record=$state/sanitize.01 what="memcheck"
    echo sanitizers >"$record.section"
    echo "$what" >"$record.title"
    finish "left out: compute-sanitizer is not installed here"
  fi
fi

write_results
rm -f "$state/cases" "$state/skipped"
failed=$(for group in $(echo "$only" | tr , ' '); do grep -l '^failed: ' "$state/$group."*.end || :; done)
if [ -n "$failed" ]; then
  say "failed (also in $result.md):"
  titles 'failed: ' >&2
  exit 1
fi
if grep -q -e '^left out: no time' -e '^left out: the device' "$state"/*.end; then
  say "none failed, but some parts were left out: see $result.md"
  exit 3
fi
say "all passed; $result.md and $result.jsonl"
