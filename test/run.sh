#!/bin/sh
# Installs the dependencies, builds, and runs the tests.
#
#   test/run.sh [--preset release|debug|asan|tsan|fuzz] [--quick] [options of ctest]
#   test/run.sh --tidy
#
# Without options: all tests of the release build. `test/run.sh -R ring` runs the tests whose names match.
#   --quick         leaves out the slow tests: under 2 minutes, for use between two commits
#   --preset fuzz   only the fuzzers of test/fuzz, 15 s each (or KOLO_FUZZ_SECONDS)
#   --tidy          clang-tidy over all sources of the libraries and programs, and no tests
#
# In the release build a test that only missed a deadline is run again alone, up to twice (test/rerun.py). If it passes, the run
# passes and lists the test under "flaky". The last line counts the tests.
set -eu
cd "$(dirname "$0")/.."

preset=release
quick=
tidy=
while [ $# -gt 0 ]; do
  case "$1" in
    --preset)
      [ $# -gt 1 ] || { echo "run.sh: --preset needs a name: release, debug, asan, tsan or fuzz" >&2; exit 2; }
      preset=$2; shift 2 ;;
    --preset=*) preset=${1#--preset=}; shift ;;
    --quick) quick="-LE (^|,)(slow|long|packaging)(,|$)"; shift ;;
    --tidy) tidy=yes; shift ;;
    -h | --help) sed -n '2,15s/^# \{0,1\}//p' "$0"; exit 0 ;;
    -*) break ;;
    *) echo "run.sh: '$1' is not an option; to run tests by name: test/run.sh -R $1" >&2; exit 2 ;;
  esac
done
case "$preset" in
  release | debug) with="--with tests --with plots --with fabrics --with python" ;;
  asan | tsan) with="--with tests --with plots --with fabrics" ;;
  fuzz) with="--with tests --with fuzz --with fabrics" ;;
  *) echo "run.sh: unknown preset '$preset'; expected one of release, debug, asan, tsan, fuzz" >&2; exit 2 ;;
esac

if [ -n "$tidy" ]; then
  cmake/setup.sh --with fabrics --with tidy
  cmake --preset release -B build/tidy -D KOLO_BUILD_TESTS=OFF -D KOLO_QUICK=OFF -D KOLO_CUDA=OFF
  cmake --build build/tidy --target kolo_commit # a header that is made by the build
  exec run-clang-tidy -quiet -p build/tidy "$PWD/(transports|collectives|tensor|train|bench)/.*"
fi

[ -n "$quick" ] || [ "$preset" = tsan ] || [ "$preset" = fuzz ] || with="$with --with launchers"
# shellcheck disable=SC2086 # several words
cmake/setup.sh $with
if command -v ccache >/dev/null 2>&1; then
  export CMAKE_CXX_COMPILER_LAUNCHER="${CMAKE_CXX_COMPILER_LAUNCHER-ccache}"
  # Without these ccache has no hits for sources with a precompiled header.
  export CCACHE_SLOPPINESS="${CCACHE_SLOPPINESS-pch_defines,time_macros}"
  # All clones of this tree on this machine share cached objects.
  export CCACHE_BASEDIR="${CCACHE_BASEDIR-$PWD}" CCACHE_NOHASHDIR="${CCACHE_NOHASHDIR-1}"
fi
# In most tests ranks are threads, and then kolo cannot set libfabric's buffer memory itself (transports/ofi/library.cpp). With
# the default of 64 MiB per rank, allocation took a third of the time of a short test.
export FI_OFI_RXM_MSG_RX_SIZE="${FI_OFI_RXM_MSG_RX_SIZE-512}"
jobs=$(nproc)
# Many tests mostly wait for timeouts and sockets, so run two per core.
tests=$((jobs * 2))

# The thread sanitizer of g++ 12 fails with the address randomization (ASLR) of recent kernels; disable it.
run=""
if [ "$preset" = tsan ] && setarch -R true 2>/dev/null; then
  run="setarch -R"
fi

# Only the release build is fast enough for the deadlines of tests, so only there a missed deadline counts as flaky.
attempts=0
[ "$preset" != release ] || attempts=2

log=build/$preset/ctest.log
report=build/$preset/failures.txt
rm -f "$log" "$report"
cmake --preset "$preset" -D KOLO_BUILD_TESTS=ON
# Again, one at a time, if it failed: the kernel may have killed a compiler because memory ran out.
$run cmake --build --preset "$preset" --parallel "$jobs" || $run cmake --build --preset "$preset" --parallel 1

results=build/$preset/Testing/Temporary/LastTest.log
rm -f "build/$preset/Testing/Temporary/LastTestsFailed.log"
status=0
# shellcheck disable=SC2086 # several words, or none
$run ctest --preset "$preset" --parallel "$tests" --no-tests=error --output-log "$log" $quick "$@" || status=$?
skipped="skipped(: | ['\"]).*" # as kolo's tests and Python's print it
if grep -qE "$skipped" "$results" 2>/dev/null; then
  echo "Skipped, and why:"
  grep -oE "$skipped" "$results" | sort | uniq -c
fi
if [ "$status" -eq 8 ]; then # tests have failed
  status=0
  $run test/rerun.py "$preset" --attempts "$attempts" >"$report" || status=$?
  cat "$report"
else
  grep -E '^[0-9]+% tests passed|^No tests were found' "$log" || true
fi
exit "$status"
