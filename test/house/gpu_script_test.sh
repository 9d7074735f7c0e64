#!/bin/sh
# Tests of test/gpu.sh with fake tools: its results if all passes, if a part fails, if there is no
# time, and if it is killed in each step.
set -eu
cd "$(dirname "$0")/../.."

failures=0
fail() { echo "gpu_script_test: $*"; failures=$((failures + 1)); }

# A temporary tree with fake programs for the script.
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
mkdir -p "$directory/tree/test" "$directory/tree/build/cuda/bin" "$directory/tools"
cp test/gpu.sh test/gpu_aims.awk "$directory/tree/test/"
programs=$directory/tree/build/cuda/bin

# play PROGRAM TEXT: writes a fake program with the shell script TEXT.
play() {
  printf '#!/bin/sh\n%s\n' "$2" >"$1"
  chmod +x "$1"
}
# shellcheck disable=SC2016  # the fake programs expand it
rows='while [ $# -gt 0 ]; do [ "$1" != --json ] || echo "{\"row\": 1}" >>"$2"; shift; done; echo "the table"'
# A Catch2 program with two tests.
# shellcheck disable=SC2016
tests='if [ "$1" = --list-test-names-only ]; then echo "one works"; echo "two, of many"; exit 2; fi'
set_up() {
  rm -rf "$directory/tree/build/cuda/gpu" "$directory/out"
  play "$directory/tools/nvidia-smi" 'echo "NVIDIA Played 1, 580.65, 9.0, Default"'
  play "$directory/tools/nvcc" 'echo "Build played"; echo "last line"'
  play "$directory/tools/cmake" 'echo "cmake version 3.25.1"'
  for tool in ninja ctest; do play "$directory/tools/$tool" :; done
  play "$directory/tools/compute-sanitizer" 'echo "no errors"'
  for program in collectives_device_kernels collectives_device_streams collectives_device_processes collectives_device_pass transports_device_streams \
    kolo-conformance; do
    play "$programs/$program" "$tests"'; echo "All tests passed"'
  done
  play "$programs/kolo-device-bench" "$rows"
  # shellcheck disable=SC2016
  play "$programs/kolo-bench" 'if [ "$1" = peers ]; then echo "nccl (with --device cuda)"; exit; fi; '"$rows"
}
benchmarks=16  # and a row of each
run() {
  # shellcheck disable=SC2016
  PATH="$directory/tools:$PATH" sh -c 'echo $$ >"$1/number"; cd "$1"; shift; export KOLO_DEPS=beside KOLO_COMMIT=abc123; exec tree/test/gpu.sh --quick --out out "$@"' sh "$directory" "$@" >"$directory/said" 2>&1
}
name=$(date -u +%Y-%m-%d)-gpu-played-1
page=$directory/out/$name.md
whole=$(printf '%s.jsonl\n%s.log\n%s.md' "$name" "$name" "$name")
left() { ls -A "$directory/out" 2>/dev/null; }
row_count() { grep -c '^{.*}$' "$directory/out/$name.jsonl" || :; }

# ends STATUS WORDS [OPTIONS...]: the script ends with STATUS, prints WORDS, and leaves no partial file.
ends() {
  wanted=$1 words=$2
  shift 2
  status=0
  run "$@" || status=$?
  [ "$status" -eq "$wanted" ] || fail "where '$words' is expected, it ends with $status"
  grep -q -e "$words" "$directory/said" || { cat "$directory/said"; fail "it does not print '$words'"; }
}
on_page() { grep -q -e "$1" "$page" || fail "'$1' is not on its page"; }
leaves_results() { [ "$(left)" = "$whole" ] || fail "$1: it leaves '$(left)'"; }

# misses TITLE CAUSE ROWS [OPTIONS...]: the part fails, which is on the page; the other parts run.
misses() {
  title=$1 cause=$2 wanted_rows=$3
  shift 3
  ends 1 "$title" "$@"
  leaves_results "$title"
  sed -n '/These parts failed/,/^| what/p' "$page" | grep -q -F -e "- $title ($cause)" || fail "'$title ($cause)' is not among the failed parts"
  [ "$(row_count)" -eq "$wanted_rows" ] || fail "where '$title' fails, it writes $(row_count) rows, not $wanted_rows"
}

# --- a part fails ---

set_up
play "$directory/tools/cmake" 'echo "cmake version 3.25.1"; case "$*" in *--build*) echo "an error of the compiler"; exit 1 ;; esac'
misses build "exit code 1" 0
on_page "Not run yet.*--only tests"
grep -q "an error of the compiler" "$directory/out/$name.log" || fail "the compiler's error is not in its log"
set_up
play "$programs/collectives_device_streams" "$tests"'; echo "  skipped: one device here"; echo "  skipped: no driver"'
misses "collectives_device_streams: one works" "some tests were skipped on a machine that has a device" 0 --only tests
grep -q "1   skipped: no driver" "$directory/said" || fail "it does not print which tests were skipped"
set_up
# shellcheck disable=SC2016
play "$programs/collectives_device_processes" "$tests"'; case "$1" in "two\, of many") exit 4 ;; esac'
misses "collectives_device_processes: two, of many" "exit code 4" 0 --only tests
on_page "collectives_device_processes: one works: passed"
set_up
# shellcheck disable=SC2016
play "$directory/tools/compute-sanitizer" 'case "$*" in *"memcheck --report-api-errors no "*) exit 9 ;; esac'
misses "memcheck of collectives_device_kernels" "exit code 9" 0 --only sanitize
set_up
# shellcheck disable=SC2016
play "$programs/kolo-bench" 'if [ "$1" = peers ]; then exit 0; fi; '"$rows"'; exit 1'
misses "all-reduce over cuda_ipc" "exit code 1" $benchmarks --only bench
set_up
# shellcheck disable=SC2016
play "$programs/kolo-device-bench" 'while [ $# -gt 0 ]; do [ "$1" != --json ] || printf "{\"row\": 1" >>"$2"; shift; done; exit 1'
misses "bandwidth of the kernels" "exit code 1" $((benchmarks - 1)) --only bench

# --- wrong options, and no device ---

set_up
play "$directory/tools/cmake" 'echo "cmake version 3.22.1"'
ends 2 "CMake 3.22.1 is too old; 3.25 or later is needed"
[ -z "$(left)" ] || fail "with an old CMake it leaves $(left)"
set_up
ends 2 "there is no step 'test'; there are build, tests, bench and sanitize" --only test
ends 2 "'9m' is no number" --within 9m
mv "$programs/kolo-bench" "$directory/kept"
ends 2 "there is no build yet; run test/gpu.sh --only build first" --only bench
mv "$directory/kept" "$programs/kolo-bench"
play "$directory/tools/nvidia-smi" 'echo "NVIDIA Played 1, 580.65, 9.0, Prohibited"'
ends 2 "compute mode is Prohibited"

# --- a device that takes one process ---

set_up
play "$directory/tools/nvidia-smi" 'echo "NVIDIA Played 1, 580.65, 9.0, Exclusive_Process"'
ends 3 "some parts were left out" --only bench
on_page "all-reduce over cuda_ipc (the device's compute mode is Exclusive_Process, which allows one process"
[ "$(row_count)" -eq 1 ] || fail "in exclusive mode it writes $(row_count) rows, not those of one process"

# --- no time ---

set_up
play "$programs/collectives_device_kernels" "$tests"'; sleep 60 & echo $! >'"$directory"'/sleeper; wait'
ends 3 "some parts were left out" --only tests --within 10
leaves_results "no time"
on_page "tests of collectives_device_kernels (no time, ended after"
on_page "tests of the kernels' text on the host (no time)"
tries=100
while [ -d "/proc/$(cat "$directory/sleeper")" ] && [ $tries -gt 0 ]; do tries=$((tries - 1)); sleep 0.05; done
[ $tries -gt 0 ] || fail "a program runs on after its part has ended"

# --- killed in each step; then the rest is added to the same page ---

# killed SIGNAL STEP PROGRAM PART ROWS: the script is killed while PROGRAM runs as PART of STEP.
killed() {
  set_up
  run --only build || fail "the build fails"
  cp "$3" "$directory/kept"
  play "$3" "case \"\$*\" in *--list*|*--version*|peers) ;; *) kill -$1 \$(cat $directory/number); exec sleep 0.2 ;; esac; exec $directory/kept \"\$@\""
  status=0
  run --only "$2" || status=$?
  [ "$status" -ne 0 ] || fail "killed by $1 in $2, it ends with 0"
  left | grep -v '\.new$' >"$directory/left"
  [ "$(cat "$directory/left")" = "$whole" ] || fail "killed by $1 in $2, it leaves '$(left)'"
  [ "$(row_count)" -eq "$5" ] || fail "killed by $1 in $2, it has $(row_count) rows"
  on_page "$4 (.*killed\|$4 (.*signal"
  mv "$directory/kept" "$3"
  if [ "$1" = KILL ]; then
    run --only "$2" || { cat "$directory/said"; fail "after a kill in $2 it fails"; }
    ! grep -q "parts failed" "$page" || fail "after a kill in $2, and again, its page lists failed parts"
  fi
}
for signal in KILL TERM; do
  killed $signal tests "$programs/kolo-conformance" "conformance of cuda_ipc, host forms" 0
  killed $signal bench "$programs/kolo-bench" "all-reduce over cuda_ipc" 1
  killed $signal sanitize "$directory/tools/compute-sanitizer" "memcheck of collectives_device_kernels" 0
done
killed KILL build "$directory/tools/cmake" configure 0

# --- all goes well, in several calls ---

set_up
play "$programs/collectives_device_processes" "$tests"'; echo "  skipped: one device here"; echo "All tests passed"'
play "$directory/tools/cmake" 'echo "cmake version 3.25.1"; echo "-- kolo: peer '"'gloo'"' left out: that of KOLO_DEPS does not load here"'
run --only build,tests || { cat "$directory/said"; fail "it fails where all goes well"; }
on_page "Not run yet.*--only bench"
run --only bench,sanitize || { cat "$directory/said"; fail "the second call fails"; }
leaves_results "all goes well"
[ "$(row_count)" -eq "$benchmarks" ] || fail "its rows are not those of all benchmarks"
for words in "NVIDIA Played 1" "commit abc123" "collectives_device_kernels: passed" "memcheck of collectives_device_kernels: passed" "the table" \
  "1 skipped: one device here" "figures beside gloo: that of KOLO_DEPS does not load here" "reduce kernel of bfloat16.*not measured" \
  "Messages of two ranks" "launched again and again from a CUDA graph" "only build,tests" "only bench,sanitize"; do
  on_page "$words"
done
! grep -q -e "Not run yet" -e "parts failed" "$page" || fail "its page lists what failed or has not run, where all goes well"
for words in "-D KOLO_WERROR=OFF" "-D KOLO_DEPS=$directory/beside"; do
  grep -q -e "$words" "$directory/out/$name.log" || fail "it does not configure with $words"
done

# A machine with a driver and without nvidia-smi. KOLO_DEPS is relative to the folder where the script was called.
set_up
rm "$directory/tools/nvidia-smi"
# shellcheck disable=SC2016
play "$directory/tools/nvcc" 'if [ "$1" = -o ]; then printf "#!/bin/sh\\necho \"NVIDIA Played 1, of CUDA 13.0, 9.0, Default\"\\n" >"$2"; chmod +x "$2"; else echo "Build played"; fi'
run --only build || { cat "$directory/said"; fail "it fails where there is no nvidia-smi, but a device"; }
on_page "NVIDIA Played 1, of CUDA 13.0, 9.0"
# shellcheck disable=SC2016
play "$directory/tools/nvcc" 'printf "#!/bin/sh\\necho no driver\\nexit 1\\n" >"$2"; chmod +x "$2"'
ends 2 "no device here: .*'no driver'"
(cd "$directory/tree/test" && ./gpu.sh --help >"$directory/said" 2>&1) || fail "it has no help in its own folder"
grep -q "one process only\.$" "$directory/said" || fail "its help is not whole"

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
