#!/bin/sh
# Installs what is needed, builds, and runs the tests.
#
#   test/run.sh [--preset release|debug|asan|tsan|fuzz] [options of ctest]
#
# Without options: all tests, as a release build. `test/run.sh -R ring` runs those whose names match. The preset fuzz is the
# fuzzers of test/fuzz alone, a minute each. The last line is ctest's count, the exit code is ctest's.
set -eu
cd "$(dirname "$0")/.."

preset=release
while [ $# -gt 0 ]; do
  case "$1" in
    --preset)
      [ $# -gt 1 ] || { echo "run.sh: --preset needs a name: release, debug, asan, tsan or fuzz" >&2; exit 2; }
      preset=$2; shift 2 ;;
    --preset=*) preset=${1#--preset=}; shift ;;
    -h | --help) sed -n '2,8s/^# \{0,1\}//p' "$0"; exit 0 ;;
    -*) break ;;
    *) echo "run.sh: '$1' is no option; to run the tests with that in their names: test/run.sh -R $1" >&2; exit 2 ;;
  esac
done
case "$preset" in
  release | debug | asan | tsan) with="--with plots --with fabrics" ;;
  fuzz) with="--with fuzz --with fabrics" ;;
  *) echo "run.sh: unknown preset '$preset'; there are release, debug, asan, tsan and fuzz" >&2; exit 2 ;;
esac

# shellcheck disable=SC2086 # several words
cmake/setup.sh $with
if command -v ccache >/dev/null 2>&1; then
  export CMAKE_CXX_COMPILER_LAUNCHER="${CMAKE_CXX_COMPILER_LAUNCHER-ccache}"
  # Without it ccache compiles anew what begins with a precompiled header.
  export CCACHE_SLOPPINESS="${CCACHE_SLOPPINESS-pch_defines,time_macros}"
  # What was compiled in one clone of this tree is found by all others of this machine.
  export CCACHE_BASEDIR="${CCACHE_BASEDIR-$PWD}" CCACHE_NOHASHDIR="${CCACHE_NOHASHDIR-1}"
fi
# In most tests ranks are threads, among which kolo cannot ask libfabric for less memory (transports/ofi/library.cpp): a third of the
# time of a short one went into 64 MiB for each.
export FI_OFI_RXM_MSG_RX_SIZE="${FI_OFI_RXM_MSG_RX_SIZE-512}"
jobs=$(nproc)
# Many tests wait for deadlines and for sockets most of their time, and leave their core to others.
tests=$((jobs * 2))

# g++ 12's thread sanitizer cannot live with as much randomness of addresses as recent kernels have by default.
run=""
if [ "$preset" = tsan ] && setarch -R true 2>/dev/null; then
  run="setarch -R"
fi

log=build/$preset/ctest.log
failures=build/$preset/failures.txt
rm -f "$log" "$failures"
cmake --preset "$preset" -D KOLO_BUILD_TESTS=ON
$run cmake --build --preset "$preset" --parallel "$jobs"

status=0
$run ctest --preset "$preset" --parallel "$tests" --no-tests=error --output-log "$log" "$@" || status=$?
results=build/$preset/Testing/Temporary/LastTest.log
if grep -q 'skipped: ' "$results" 2>/dev/null; then
  echo "Skipped, and why:"
  grep -o 'skipped: .*' "$results" | sort | uniq -c
fi
failed=build/$preset/Testing/Temporary/LastTestsFailed.log
if [ "$status" -ne 0 ] && [ -s "$failed" ]; then
  echo "Failed in $preset, and the last lines of each (all are in $results):"
  awk -v most=40 '
    NR == FNR { sub(/^[0-9]+:/, ""); failed[$0]; next }
    /^[0-9]+\/[0-9]+ Test: / { name = $0; sub(/^[^:]*: /, "", name); lines = 0; is_output = 0; next }
    !(name in failed) { next }
    /^<end of output>$/ {
      print "--- " name
      for (i = lines > most ? lines - most : 0; i < lines; ++i) print line[i]
      is_output = 0
    }
    is_output { line[lines++] = $0 }
    /^-----/ && lines == 0 { is_output = 1 }
  ' "$failed" "$results" | tee "$failures"
fi
grep -E '^[0-9]+% tests passed|^No tests were found' "$log" || true
exit "$status"
