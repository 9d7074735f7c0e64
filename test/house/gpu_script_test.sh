#!/bin/sh
# test/gpu.sh over tools that are played: what it writes where all goes well, and that a step that fails leaves nothing.
set -eu
cd "$(dirname "$0")/../.."

failures=0
fail() { echo "gpu_script_test: $*"; failures=$((failures + 1)); }

# A tree of its own, with what the script runs.
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
mkdir -p "$directory/tree/test" "$directory/tree/build/cuda/bin" "$directory/tools"
cp test/gpu.sh "$directory/tree/test/"

# play PROGRAM TEXT: a program that does what the shell's TEXT says.
play() {
  printf '#!/bin/sh\n%s\n' "$2" >"$1"
  chmod +x "$1"
}
# shellcheck disable=SC2016  # for the played programs to expand
rows='while [ $# -gt 0 ]; do [ "$1" != --json ] || echo "{\"row\": 1}" >>"$2"; shift; done; echo "the table"'
set_up() {
  play "$directory/tools/nvidia-smi" 'echo "NVIDIA Played 1, 580.65, 9.0"'
  play "$directory/tools/nvcc" 'echo "Build played"; echo "last line"'
  play "$directory/tools/cmake" 'echo "cmake version 3.25.1"'
  for tool in ninja ctest; do play "$directory/tools/$tool" :; done
  play "$directory/tools/compute-sanitizer" 'echo "no errors"'
  for program in collectives_device_kernels collectives_device_streams collectives_device_processes collectives_device_pass kolo-conformance; do
    play "$directory/tree/build/cuda/bin/$program" 'echo "All tests passed"'
  done
  play "$directory/tree/build/cuda/bin/kolo-device-bench" "$rows"
  # shellcheck disable=SC2016
  play "$directory/tree/build/cuda/bin/kolo-bench" 'if [ "$1" = peers ]; then echo "nccl (with --device cuda)"; exit; fi; '"$rows"
}
run() {
  # shellcheck disable=SC2016
  PATH="$directory/tools:$PATH" sh -c 'echo $$ >"$1/number"; exec "$1/tree/test/gpu.sh" --quick --out "$1/out"' sh "$directory" >"$directory/said" 2>&1
}
left() { ls -A "$directory/out" 2>/dev/null; }

# fails WORDS: it ends with 1 and says WORDS, and there is no file, whole or half.
fails() {
  status=0
  run || status=$?
  [ "$status" -eq 1 ] || fail "where '$1' is to be said it ends with $status"
  grep -q -e "$1" "$directory/said" || { cat "$directory/said"; fail "it does not say '$1'"; }
  [ -z "$(left)" ] || fail "where '$1' is said it leaves $(left)"
}

set_up
play "$directory/tools/cmake" 'case "$*" in *--build*) echo "an error of the compiler"; exit 1 ;; esac'
fails "failed: build (above; exit code 1)"
set_up
play "$directory/tree/build/cuda/bin/collectives_device_streams" 'echo "skipped: no device"; echo "All tests passed"'
fails "tests were skipped on a machine that has a device"
set_up
play "$directory/tree/build/cuda/bin/collectives_device_streams" 'echo "  skipped: one device here"; echo "  skipped: no driver"'
fails "1   skipped: no driver"
set_up
play "$directory/tools/compute-sanitizer" 'exit 9'
fails "failed: memcheck of collectives_device_kernels (above; exit code 9)"
set_up
# shellcheck disable=SC2016
play "$directory/tree/build/cuda/bin/kolo-bench" 'if [ "$1" = peers ]; then exit 0; fi; '"$rows"'; case "$*" in *) exit 1 ;; esac'
fails "failed: collectives over cuda_ipc"

set_up
play "$directory/tree/build/cuda/bin/kolo-device-bench" "kill \$(cat $directory/number)"
fails "benchmark"

set_up
play "$directory/tree/build/cuda/bin/collectives_device_processes" 'echo "  skipped: one device here"; echo "All tests passed"'
run || { cat "$directory/said"; fail "it fails where all goes well"; }
name=$(date -u +%Y-%m-%d)-gpu-played-1
[ "$(left)" = "$(printf '%s.jsonl\n%s.md' "$name" "$name")" ] || fail "it writes $(left), not $name.md and .jsonl alone"
[ "$(wc -l <"$directory/out/$name.jsonl")" -eq 8 ] || fail "its rows are not those of all benchmarks"
for words in "NVIDIA Played 1" "commit" "All tests passed" "memcheck: no errors" "racecheck: no errors" "the table" \
  "1 skipped: one device here"; do
  grep -q "$words" "$directory/out/$name.md" || fail "'$words' is not on its page"
done

[ "$failures" -eq 0 ]
