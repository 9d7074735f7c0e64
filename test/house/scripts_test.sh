#!/bin/sh
# Tests of the shell scripts: they are valid POSIX sh, pass shellcheck if it is installed, and reject bad input with one message.
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

# refuses WORDS COMMAND...: the command fails with a message that contains WORDS.
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
refuses "'ring' is not an option" ./test/run.sh ring
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

# On an unknown system, setup.sh lists the missing tools and headers, and does not try to install.
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
printf 'ID=fedora\nVERSION_ID=43\n' >"$directory/os-release"
for tool in sh sed tr grep; do ln -s "$(command -v "$tool")" "$directory/$tool"; done
refuses "install these yourself" env "PATH=$directory" ./cmake/setup.sh --os-release "$directory/os-release"
refuses "cmake, git, python3, ninja, Catch2" env "PATH=$directory" ./cmake/setup.sh --os-release "$directory/os-release"
./cmake/setup.sh --os-release "$directory/os-release" || fail "setup.sh wants more than this machine, which built kolo, has"

# kolo configures with the collected packages while the system's are hidden, and no file is left beside the folder.
# The last folder is filled by a script that finds no gloo: it says so, and makes no package of it.
./cmake/collect_deps.sh "$directory/deps/all" >/dev/null || fail "collect_deps.sh cannot collect what kolo was built with"
[ "$(ls "$directory/deps")" = all ] || fail "collect_deps.sh leaves something behind"
sed 's|gloo/allreduce\.h|gloo/absent.h|' cmake/collect_deps.sh >"$directory/without_gloo"
mkdir "$directory/deps/empty"
ln -s empty "$directory/deps/link"
for named in empty/ link new//; do
  script=./cmake/collect_deps.sh
  [ "$named" != new// ] || script="$directory/without_gloo"
  sh "$script" "$directory/deps/$named" 2>"$directory/said" >/dev/null || { cat "$directory/said"; fail "$script cannot fill $named"; }
  [ -e "$directory/deps/${named%%/*}/include/fmt/format.h" ] || fail "$script leaves $named without fmt"
  rm -rf "$directory/deps/empty" && mkdir "$directory/deps/empty"
done
[ "$(cd "$directory/deps" && echo * .[!.]*)" = "all empty link new .[!.]*" ] || fail "collect_deps.sh leaves something beside what it fills"
[ "$(grep -c 'gloo is not installed here' "$directory/said")" = "$(wc -l <"$directory/said")" ] || fail "collect_deps.sh says more than that gloo is not installed"
[ ! -e "$directory/deps/new/lib/cmake/Gloo" ] || fail "collect_deps.sh makes a package of a gloo that is not installed"
# KOLO_FMT_ONCE: whether fmt can be compiled once was found out when kolo was built.
cmake -S . -B "$directory/build" -G Ninja -D "KOLO_DEPS=$directory/deps/all" -D CMAKE_FIND_USE_CMAKE_SYSTEM_PATH=OFF \
  -D KOLO_CUDA=OFF -D KOLO_FMT_ONCE=ON >"$directory/log" 2>&1 || { cat "$directory/log"; fail "KOLO_DEPS does not configure"; }
for package in fmt Catch2 CLI11 nlohmann_json; do
  grep -q "^${package}_DIR:PATH=$directory/deps" "$directory/build/CMakeCache.txt" || fail "$package is not that of KOLO_DEPS"
done

# gloo of KOLO_DEPS works if it is installed here, also after the folder was moved. If it does not load, it is left out with a
# message.
if [ -e /usr/include/gloo/allreduce.h ]; then
  grep -q "^Gloo_DIR:PATH=$directory/deps" "$directory/build/CMakeCache.txt" || fail "gloo is not that of KOLO_DEPS"
  grep -q "^-- kolo: peers gloo" "$directory/log" || { cat "$directory/log"; fail "gloo of KOLO_DEPS is no peer"; }
  mv "$directory/deps/all" "$directory/deps/moved"
  mkdir "$directory/program"
  # shellcheck disable=SC2016  # CMake's variables
  printf '%s\n' 'cmake_minimum_required(VERSION 3.25)' 'project(program LANGUAGES CXX)' 'find_package(Gloo REQUIRED)' \
    'add_library(between STATIC ${Gloo_DIR}/try.cpp)' 'target_link_libraries(between PRIVATE gloo)' \
    'file(WRITE ${CMAKE_BINARY_DIR}/none.cpp "")' 'add_executable(program none.cpp)' 'target_link_libraries(program PRIVATE between)' >"$directory/program/CMakeLists.txt"
  { cmake -S "$directory/program" -B "$directory/program/build" -D CMAKE_CXX_STANDARD=20 -D "CMAKE_PREFIX_PATH=$directory/deps/moved" &&
    cmake --build "$directory/program/build"; } >"$directory/log" 2>&1 || { cat "$directory/log"; fail "no program can be built with gloo of KOLO_DEPS"; }
  "$directory/program/build/program" || fail "gloo of KOLO_DEPS does not work"
  for library in gloo hiredis ibverbs nl-3; do
    ldd "$directory/program/build/program" | grep -q "lib$library\.so.* => $directory/deps/moved/lib/gloo/" || fail "lib$library is not that of KOLO_DEPS"
  done
  : >"$directory/deps/moved/lib/gloo/libhiredis.so.0.14"
  # In the same folder: what is known of the compiler stays, what is known of gloo goes.
  cmake -S . -B "$directory/build" -U 'G[Ll][Oo][Oo]*' -D "KOLO_DEPS=$directory/deps/moved" -D CMAKE_FIND_USE_CMAKE_SYSTEM_PATH=ON \
    -D KOLO_BUILD_TESTS=OFF -D KOLO_BUILD_TRAIN=OFF >"$directory/log" 2>&1 || { cat "$directory/log"; fail "a gloo that does not load is in the way"; }
  grep -q "peer 'gloo' left out: gloo was not found: that of KOLO_DEPS" "$directory/log" || { cat "$directory/log"; fail "a gloo that does not load is not left out by name"; }
fi

[ "$failures" -eq 0 ]
