#!/bin/sh
# Tests of test/gpu.sh with fake tools: its results if all passes and if a step fails. A failed build leaves no file.
set -eu
cd "$(dirname "$0")/../.."

failures=0
fail() { echo "gpu_script_test: $*"; failures=$((failures + 1)); }

# A temporary tree with fake programs for the script.
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
mkdir -p "$directory/tree/test" "$directory/tree/build/cuda/bin" "$directory/tools"
cp test/gpu.sh test/gpu_aims.awk "$directory/tree/test/"

# play PROGRAM TEXT: writes a fake program with the shell script TEXT.
play() {
  printf '#!/bin/sh\n%s\n' "$2" >"$1"
  chmod +x "$1"
}
# shellcheck disable=SC2016  # the fake programs expand it
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
benchmarks=16  # and a row of each
run() {
  # shellcheck disable=SC2016
  PATH="$directory/tools:$PATH" sh -c 'echo $$ >"$1/number"; cd "$1"; export KOLO_DEPS=beside; exec tree/test/gpu.sh --quick --out "$1/out"' sh "$directory" >"$directory/said" 2>&1
}
name=$(date -u +%Y-%m-%d)-gpu-played-1
both=$(printf '%s.jsonl\n%s.md' "$name" "$name")
left() { ls -A "$directory/out" 2>/dev/null; }

# ends STATUS WORDS: the script ends with STATUS and prints WORDS.
ends() {
  status=0
  run || status=$?
  [ "$status" -eq "$1" ] || fail "where '$2' is to be said it ends with $status"
  grep -q -e "$2" "$directory/said" || { cat "$directory/said"; fail "it does not say '$2'"; }
}

# fails WORDS: the script ends with 1, prints WORDS and leaves no file, not even a partial one.
fails() {
  ends 1 "$1"
  [ -z "$(left)" ] || fail "where '$1' is said it leaves $(left)"
}

# misses WORDS ROWS: the script ends with 1 and prints WORDS, also on its page, and writes ROWS rows from the other steps.
misses() {
  ends 1 "$1"
  [ "$(left)" = "$both" ] || fail "where '$1' is said it leaves '$(left)'"
  sed -n '/These steps failed/,/^| what/p' "$directory/out/$name.md" | grep -q -e "- $1 (" || fail "'$1' is not on its page"
  written=$(wc -l <"$directory/out/$name.jsonl")
  [ "$written" -eq "$2" ] || fail "where '$1' is said it writes $written rows, not $2"
  rm -rf "$directory/out"
}

set_up
play "$directory/tools/cmake" 'echo "cmake version 3.25.1"; case "$*" in *--build*) echo "an error of the compiler"; exit 1 ;; esac'
fails "failed: build (above; exit code 1)"
set_up
play "$directory/tree/build/cuda/bin/collectives_device_streams" 'echo "skipped: no device"; echo "All tests passed"'
misses "tests of collectives_device_streams" $benchmarks
grep -q "some were skipped on a machine that has a device" "$directory/said" || fail "it does not say that tests were skipped"
set_up
play "$directory/tree/build/cuda/bin/collectives_device_streams" 'echo "  skipped: one device here"; echo "  skipped: no driver"'
misses "tests of collectives_device_streams" $benchmarks
grep -q "1   skipped: no driver" "$directory/said" || fail "it does not say which tests were skipped"
set_up
play "$directory/tools/compute-sanitizer" 'case "$*" in *"memcheck --report-api-errors no "*) exit 9 ;; esac'
misses "memcheck of collectives_device_kernels" $benchmarks
set_up
# shellcheck disable=SC2016
play "$directory/tree/build/cuda/bin/kolo-bench" 'if [ "$1" = peers ]; then exit 0; fi; '"$rows"'; case "$*" in *) exit 1 ;; esac'
misses "collectives over cuda_ipc" $benchmarks
set_up
# shellcheck disable=SC2016
play "$directory/tree/build/cuda/bin/kolo-device-bench" 'printf "{\"row\": 1" >>"$6"; exit 1'
misses "benchmark" $((benchmarks - 1))

set_up
play "$directory/tools/cmake" 'echo "cmake version 3.22.1"'
ends 2 "CMake 3.22.1 is too old; 3.25 or later is needed"
[ -z "$(left)" ] || fail "with an old CMake it leaves $(left)"
set_up
play "$directory/tree/build/cuda/bin/kolo-device-bench" "kill \$(cat $directory/number)"
fails "benchmark"

set_up
play "$directory/tree/build/cuda/bin/collectives_device_processes" 'echo "  skipped: one device here"; echo "All tests passed"'
play "$directory/tools/cmake" 'echo "cmake version 3.25.1"; echo "-- kolo: peer '"'gloo'"' left out: that of KOLO_DEPS does not load here"'
run || { cat "$directory/said"; fail "it fails where all goes well"; }
[ "$(left)" = "$both" ] || fail "it writes $(left), not $name.md and .jsonl alone"
[ "$(wc -l <"$directory/out/$name.jsonl")" -eq "$benchmarks" ] || fail "its rows are not those of all benchmarks"
for words in "NVIDIA Played 1" "commit" "All tests passed" "memcheck: no errors" "racecheck: no errors" "the table" \
  "1 skipped: one device here" "figures beside gloo: that of KOLO_DEPS does not load here" "reduce kernel of bfloat16.*not measured" \
  "Messages of two ranks" "launched again and again from a CUDA graph"; do
  grep -q "$words" "$directory/out/$name.md" || fail "'$words' is not on its page"
done
rm -rf "$directory/out"
for words in "-D KOLO_WERROR=OFF" "-D KOLO_DEPS=$directory/beside"; do
  grep -q -e "$words" "$directory/said" || fail "it does not configure with $words"
done

# A machine with a driver and without nvidia-smi. KOLO_DEPS is relative to the folder where the script was called.
set_up
rm "$directory/tools/nvidia-smi"
# shellcheck disable=SC2016
play "$directory/tools/nvcc" 'if [ "$1" = -o ]; then printf "#!/bin/sh\\necho \"NVIDIA Played 1, of CUDA 13.0, 9.0\"\\n" >"$2"; chmod +x "$2"; else echo "Build played"; fi'
run || { cat "$directory/said"; fail "it fails where there is no nvidia-smi, but a device"; }
grep -q "NVIDIA Played 1, of CUDA 13.0, 9.0" "$directory/out/$name.md" || fail "without nvidia-smi the device is not on its page"
rm -rf "$directory/out"
# shellcheck disable=SC2016
play "$directory/tools/nvcc" 'printf "#!/bin/sh\\necho no driver\\nexit 1\\n" >"$2"; chmod +x "$2"'
ends 2 "no device here: .*'no driver'"
(cd "$directory/tree/test" && ./gpu.sh --help >"$directory/said" 2>&1) || fail "it has no help in its own folder"
grep -q "no device\.$" "$directory/said" || fail "its help is not whole"

# The targets: the worst row of each, and whether it is reached.
row() {
  printf '{"library":"%s","transport":"%s","collective":"%s","bytes":%s,"median_us":%s,"type":"%s","enqueue_us":%s,"limit_us":%s,"of_copy":%s,"run":{"command":"%s"}}\n' "$@"
}
over="kolo-bench allreduce --device cuda --ranks 2 --transport cuda_ipc"
{
  row kolo device reduce_kernel 67108864 100 float32 null null 0.95 kolo-device-bench
  row kolo device reduce_kernel 1073741824 100 float32 null null 0.91 kolo-device-bench
  row kolo device reduce_kernel 67108864 100 bfloat16 null null 0.895 kolo-device-bench
  row kolo cuda_ipc allreduce 8 20.5 float32 4.5 null null "$over"
  row kolo cuda_ipc allreduce 32768 20.5 float32 10.25 null null "$over"
  row kolo cuda_ipc allreduce 64 10.5 float32 3.5 null null "$over --captured" | sed 's/"type"/"peer":"captured","form":"captured",&/'
  row kolo cuda_ipc allreduce 134217728 1 float32 99 10 null "$over --captured" | sed 's/"type"/"peer":"captured","form":"captured",&/'
  row kolo cuda_ipc allreduce 262144 20.5 float32 99 null null "$over"
  row kolo cuda_ipc allreduce 134217728 1e+3 float32 5 850.5 null "$over"
  row gloo tcp allreduce 134217728 30000 float32 null null null "$over"
  row gloo tcp allreduce 134217728 300 float32 null null null "kolo-bench allreduce --device cuda --transport shm"
} >"$directory/rows"
awk -f test/gpu_aims.awk "$directory/rows" >"$directory/aims"
for line in "copy bandwidth | 85.0 % (128 MiB) | yes |" "gloo on CUDA tensors | 30.0 times (128 MiB) | yes |" "to enqueue | 10.25 us (32768 B) | no |" \
  "to launch | 3.50 us (64 B) | yes |" \
  "of float32: 90 % of the copy bandwidth | 91.0 % (1024 MiB) | yes |" "of bfloat16: 90 % of the copy bandwidth | 89.5 % (64 MiB) | no |" \
  "of float8_e5m2: 90 % of the copy bandwidth | not measured | - |"; do
  grep -q -F "$line" "$directory/aims" || { cat "$directory/aims"; fail "'$line' is not among the aims"; }
done

[ "$failures" -eq 0 ]
