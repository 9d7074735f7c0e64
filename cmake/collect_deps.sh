#!/bin/sh
# Collects the dependencies of kolo's tests and benchmarks in a folder (not compilers, CMake and ninja). A machine without
# network and without a package manager can then build kolo.
#
#   cmake/collect_deps.sh DIR
#   cmake --preset cuda -D KOLO_DEPS=DIR          # on that machine; or KOLO_DEPS in the environment
#
# Copies fmt, Catch2, CLI11 and nlohmann-json as installed here (cmake/setup.sh): headers, about 3 MB, and small package files with
# relative paths. So the folder may be moved, also to another processor or C library. (Catch2 3 also has a compiled library, which
# is copied and needs a machine like this one.) The dependencies of train/ alone (oneDNN, matio, zlib, libjpeg, libpng) are not copied;
# train/ leaves out what it does not find.
#
# Also copies gloo, a peer of kolo-bench, if it is installed here: headers, its shared library and the libraries that it needs,
# without the C and C++ runtimes. If it does not compile, link and run on the other machine (for example with an older C library),
# its package file reports that, and the peer is left out.
#
# DIR is created, or must be empty. If a dependency is missing here, DIR is not filled.
set -eu

fail() { echo "collect_deps: $*" >&2; exit 1; }

case "${1-}" in
  -h | --help) sed -n '2,18s/^# \{0,1\}//p' "$0"; exit 0 ;;
  "") echo "collect_deps: into which folder? see $0 --help" >&2; exit 2 ;;
  -*) echo "collect_deps: unknown option '$1'; see $0 --help" >&2; exit 2 ;;
esac
[ $# -eq 1 ] || { echo "collect_deps: one folder, not $#; see $0 --help" >&2; exit 2; }
target=$1
[ ! -e "$target" ] || [ -d "$target" ] || fail "$target exists and is not a folder"
# Strip a slash at the end: with it, the scratch folder beside the target would be inside it.
if [ -d "$target" ]; then target=$(cd "$target" && pwd -P); fi
while [ "${target%/}" != "$target" ] && [ "$target" != / ]; do target=${target%/}; done
[ ! -d "$target" ] || [ -z "$(ls -A "$target")" ] || fail "$target is not empty: name another folder, or empty it"
mkdir -p "$(dirname "$target")" || fail "cannot make $(dirname "$target")"

scratch=$(mktemp -d "$target.XXXXXX") || fail "cannot write beside $target"
trap 'rm -rf "$scratch"' EXIT

# where HEADER: the folder that has it.
where() {
  for folder in /usr/local/include /usr/include; do
    if [ -e "$folder/$1" ]; then echo "$folder"; return; fi
  done
  return 1
}

# headers HEADER NAME: copies the folder of headers that contains HEADER.
headers() {
  folder=$(where "$1") || fail "$2 is not installed here ($1); cmake/setup.sh installs it"
  mkdir -p "$scratch/include"
  cp -RL "$folder/${1%%/*}" "$scratch/include/"
}

# package NAME: writes a package file from standard input; @include@ and @lib@ become paths of the folder.
package() {
  mkdir -p "$scratch/lib/cmake/$1"
  {
    # shellcheck disable=SC2016  # CMake's variables
    printf 'get_filename_component(root "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)\n'
    # shellcheck disable=SC2016
    sed 's/@include@/${root}\/include/g; s/@lib@/${root}\/lib/g'
  } >"$scratch/lib/cmake/$1/$1Config.cmake"
}

# interface TARGET: CMake code for a header-only target, unless it exists already.
interface() {
  echo "if(NOT TARGET $1)"
  echo "  add_library($1 INTERFACE IMPORTED)"
  echo "  target_include_directories($1 INTERFACE \"@include@\")"
  echo "endif()"
}

headers fmt/format.h fmt
{
  interface fmt::fmt-header-only
  interface fmt::fmt
  echo "target_compile_definitions(fmt::fmt-header-only INTERFACE FMT_HEADER_ONLY=1)"
  echo "target_compile_definitions(fmt::fmt INTERFACE FMT_HEADER_ONLY=1)"
} | package fmt

headers CLI/CLI.hpp CLI11
interface CLI11::CLI11 | package CLI11

headers nlohmann/json.hpp nlohmann-json
interface nlohmann_json::nlohmann_json | package nlohmann_json

if where catch2/catch.hpp >/dev/null; then headers catch2/catch.hpp Catch2; else headers catch2/catch_all.hpp Catch2; fi
script=$(find /usr/local/lib /usr/lib /usr/share -path '*Catch2/Catch.cmake' 2>/dev/null | head -n 1)
[ -n "$script" ] || fail "Catch2's CMake script Catch.cmake is not installed here; cmake/setup.sh installs it"
{
  interface Catch2::Catch2
  # shellcheck disable=SC2016
  echo 'list(APPEND CMAKE_MODULE_PATH "${CMAKE_CURRENT_LIST_DIR}")'
  if [ -e "$scratch/include/catch2/catch_all.hpp" ]; then
    folder=$(dirname "$(find /usr/local/lib /usr/lib -name libCatch2Main.a 2>/dev/null | head -n 1)")
    cp "$folder/libCatch2.a" "$folder/libCatch2Main.a" "$scratch/lib/" || fail "libCatch2.a is not installed here"
    interface Catch2::Catch2WithMain
    echo 'target_link_libraries(Catch2::Catch2WithMain INTERFACE "@lib@/libCatch2Main.a" "@lib@/libCatch2.a")'
  fi
} | package Catch2
cp "$script" "$(dirname "$script")/CatchAddTests.cmake" "$scratch/lib/cmake/Catch2/"

# The package file of gloo defines the target only if a test program with gloo runs.
gloo_package() {
  cat <<'END'
if(TARGET gloo)
  return()
endif()
if(NOT TARGET collected_gloo)
  add_library(collected_gloo SHARED IMPORTED)
  set_target_properties(collected_gloo PROPERTIES IMPORTED_LOCATION "@lib@/gloo/libgloo.so.0" IMPORTED_SONAME libgloo.so.0)
  target_include_directories(collected_gloo INTERFACE "@include@")
  # DT_RPATH also applies to the libraries that gloo needs.
  target_link_libraries(collected_gloo INTERFACE "-Wl,-rpath-link,@lib@/gloo" "-Wl,--disable-new-dtags")
endif()
try_run(GLOO_OF_DEPS_RUNS GLOO_OF_DEPS_LINKS SOURCES "${CMAKE_CURRENT_LIST_DIR}/try.cpp"
        LINK_LIBRARIES collected_gloo CXX_STANDARD 20 CXX_STANDARD_REQUIRED ON
        COMPILE_OUTPUT_VARIABLE said RUN_OUTPUT_VARIABLE said_running)
if(NOT GLOO_OF_DEPS_LINKS)
  set(Gloo_NOT_FOUND_MESSAGE "that of KOLO_DEPS cannot be compiled or linked here")
  message(VERBOSE "${said}")
elseif(NOT GLOO_OF_DEPS_RUNS EQUAL 0)
  set(Gloo_NOT_FOUND_MESSAGE "that of KOLO_DEPS does not load here")
  message(VERBOSE "${said_running}")
endif()
if(Gloo_NOT_FOUND_MESSAGE)
  set(Gloo_FOUND FALSE)
  return()
endif()
add_library(gloo ALIAS collected_gloo)
END
}

gloo_library=$(find /usr/local/lib /usr/lib -name libgloo.so.0 2>/dev/null | head -n 1)
if where gloo/allreduce.h >/dev/null && [ -n "$gloo_library" ]; then
  headers gloo/allreduce.h gloo
  mkdir "$scratch/lib/gloo"
  cp -L "$gloo_library" "$scratch/lib/gloo/"
  # NAME => PATH (ADDRESS)
  ldd "$gloo_library" | sed -n 's/.* => \(\/[^ ]*\) .*/\1/p' | while read -r needed; do
    case ${needed##*/} in
      libc.so.* | libm.so.* | libstdc++.so.* | libgcc_s.so.* | libpthread.so.* | libdl.so.* | librt.so.* | ld-linux*) ;;
      *) cp -L "$needed" "$scratch/lib/gloo/" ;;
    esac
  done
  gloo_package | package Gloo
  cat >"$scratch/lib/cmake/Gloo/try.cpp" <<'END'
#include <gloo/allreduce.h>
#include <gloo/alltoall.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/hash_store.h>
#include <gloo/transport/tcp/device.h>

int main() {
  gloo::rendezvous::HashStore store;
  store.set("key", {'v'});
  gloo::AllreduceOptions options(std::make_shared<gloo::rendezvous::Context>(0, 1));
  (void)gloo::transport::tcp::CreateDevice(gloo::transport::tcp::attr("127.0.0.1"));
  return store.get("key").size() == 1 ? 0 : 1;
}
END
else
  echo "collect_deps: gloo is not installed here (libgloo-dev): left out, and kolo-bench there has no peer of that name" >&2
fi

megabytes=$(du -sm "$scratch" | cut -f1)
[ "$megabytes" -lt 40 ] || fail "the collected files take $megabytes MB; the limit is 40"
chmod 755 "$scratch"
[ ! -d "$target" ] || rmdir "$target" || fail "cannot replace $target with the collected files"
mv "$scratch" "$target"
trap - EXIT
echo "collect_deps: $megabytes MB in $target; there: cmake --preset cuda -D KOLO_DEPS=$target"
