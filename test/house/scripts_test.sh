#!/bin/sh
# The shell scripts are valid POSIX sh, please shellcheck where it is installed, and refuse bad input with one message.
set -eu
cd "$(dirname "$0")/../.."

failures=0
fail() { echo "scripts_test: $*"; failures=$((failures + 1)); }

scripts=".ci/run $(find cmake test train bench -name '*.sh')"
for script in $scripts; do
  sh -n "$script" || fail "$script is not valid shell"
  [ -x "$script" ] || fail "$script is not executable"
done
if command -v shellcheck >/dev/null 2>&1; then
  # shellcheck disable=SC2086  # one word a script
  shellcheck $scripts || fail "shellcheck has something to say (above)"
fi

# refuses WORDS COMMAND...: the command fails, and says WORDS.
refuses() {
  words=$1
  shift
  if output=$("$@" 2>&1); then
    fail "$* succeeds"
  else
    case "$output" in *"$words"*) ;; *) fail "$* says '$output', not '$words'" ;; esac
  fi
}

refuses "unknown preset 'fast'" ./test/run.sh --preset fast
refuses "'ring' is no option" ./test/run.sh ring
refuses "--preset needs a name" ./test/run.sh --preset
refuses "unknown option '--frobnicate'" ./cmake/setup.sh --frobnicate
refuses "unknown group 'all'" ./cmake/setup.sh --with all
refuses "into which folder?" ./cmake/collect_deps.sh
refuses "is not empty" ./cmake/collect_deps.sh test
refuses "unknown option '--frobnicate'" ./test/gpu.sh --frobnicate
refuses "--deps needs a value" ./test/gpu.sh --deps
command -v nvidia-smi >/dev/null 2>&1 || refuses "no device here" ./test/gpu.sh
refuses "which suite?" ./cmake/fresh.sh
refuses "unknown suite 'potato'" ./cmake/fresh.sh potato

# On a system that is not known: the missing things by name, and no attempt to install.
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
printf 'ID=fedora\nVERSION_ID=43\n' >"$directory/os-release"
for tool in sh sed tr grep; do ln -s "$(command -v "$tool")" "$directory/$tool"; done
refuses "install these yourself" env "PATH=$directory" ./cmake/setup.sh --os-release "$directory/os-release"
refuses "cmake, git, python3, ninja, Catch2" env "PATH=$directory" ./cmake/setup.sh --os-release "$directory/os-release"
./cmake/setup.sh --os-release "$directory/os-release" || fail "setup.sh wants more than this machine, which built kolo, has"

# What is collected here configures with the system's own packages out of sight, and nothing is left beside the folder.
./cmake/collect_deps.sh "$directory/deps/all" >/dev/null || fail "collect_deps.sh cannot collect what kolo was built with"
[ "$(ls "$directory/deps")" = all ] || fail "collect_deps.sh leaves something behind"
mkdir "$directory/deps/empty"
ln -s empty "$directory/deps/link"
for named in empty/ link new//; do
  ./cmake/collect_deps.sh "$directory/deps/$named" >/dev/null || fail "collect_deps.sh cannot fill $named"
  [ -e "$directory/deps/${named%%/*}/include/fmt/format.h" ] || fail "collect_deps.sh leaves $named without fmt"
  rm -rf "$directory/deps/empty" && mkdir "$directory/deps/empty"
done
[ "$(cd "$directory/deps" && echo * .[!.]*)" = "all empty link new .[!.]*" ] || fail "collect_deps.sh leaves something beside what it fills"
cmake -S . -B "$directory/build" -G Ninja -D "KOLO_DEPS=$directory/deps/all" -D CMAKE_FIND_USE_CMAKE_SYSTEM_PATH=OFF \
  -D KOLO_CUDA=OFF >"$directory/log" 2>&1 || { cat "$directory/log"; fail "KOLO_DEPS does not configure"; }
for package in fmt Catch2 CLI11 nlohmann_json; do
  grep -q "^${package}_DIR:PATH=$directory/deps" "$directory/build/CMakeCache.txt" || fail "$package is not that of KOLO_DEPS"
done

[ "$failures" -eq 0 ]
