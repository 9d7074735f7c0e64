# KOLO_QUICK: for builds that are there to be tested, a tenth of whose time goes into reading the same headers again and
# again. The sanitizers' presets set it. The others do not, so that a source of the libraries that forgets an include is found
# there; tests and programs, which are compiled in no other tree, are read so everywhere.
#
# kolo_precompiled(TARGET FOR libraries|programs|tests)   TARGET's sources begin with the headers that most of its kind want,
#                                                         read once
#
# Tests and the libraries of programs are also compiled five sources at a time, in every tree (KoloTest.cmake, KoloComponent.cmake).
#
# A source with compile options of its own needs SKIP_PRECOMPILE_HEADERS: g++ refuses headers compiled by others.

option(KOLO_QUICK "Precompile headers and join some sources: faster, but blind to a missing include" OFF)

set(KOLO_PRECOMPILED_libraries <algorithm> <array> <chrono> <cstdint> <cstring> <functional> <map> <memory> <optional> <span>
    <stdexcept> <string> <string_view> <thread> <utility> <vector> <fmt/format.h> <fmt/ranges.h>)
set(KOLO_PRECOMPILED_programs ${KOLO_PRECOMPILED_libraries} <filesystem> <fstream> <nlohmann/json.hpp>)
set(KOLO_PRECOMPILED_tests "${PROJECT_SOURCE_DIR}/test/support/catch.h" <algorithm> <array> <chrono> <cmath> <cstring>
    <filesystem> <fstream> <functional> <memory> <numeric> <set> <stdexcept> <string> <thread> <vector>)

# Most of a test runs once: to compile it takes longer. (What may be uninitialized, g++ guesses then.)
set(KOLO_TEST_OPTIONS $<$<CONFIG:Release>:-Og> $<$<CONFIG:Release>:-Wno-maybe-uninitialized>)

# What is undefined is looked for in what is tested; in the tests, too, that takes half of their compilers' time.
if(CMAKE_CXX_FLAGS MATCHES "-fsanitize=[a-z,]*undefined")
  list(APPEND KOLO_TEST_OPTIONS -fno-sanitize=undefined)
endif()

# The target that compiles them; its own source is empty. Programs and libraries differ in their flags.
function(kolo_precompile_for kind target)
  set(source ${PROJECT_BINARY_DIR}/generated/precompiled.cpp)
  file(CONFIGURE OUTPUT ${source} CONTENT "int main() {}\n")
  if(NOT kind STREQUAL tests)
    add_library(${target} OBJECT ${source})
    target_compile_options(${target} PRIVATE ${KOLO_LIBRARY_OPTIONS})
    target_link_libraries(${target} PRIVATE kolo::formatting)
    if(kind STREQUAL programs)
      target_link_libraries(${target} PRIVATE nlohmann_json::nlohmann_json)
    endif()
  else()
    add_executable(${target} ${source})
    target_link_libraries(${target} PRIVATE kolo_catch)
    target_compile_options(${target} PRIVATE ${KOLO_TEST_OPTIONS})
  endif()
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR})
  kolo_flags(${target})
  target_precompile_headers(${target} PRIVATE ${KOLO_PRECOMPILED_${kind}})
endfunction()

function(kolo_precompiled target _ kind)
  if(NOT KOLO_QUICK AND kind STREQUAL libraries)
    return()
  endif()
  set(from kolo_precompiled_for_${kind})
  if(NOT TARGET ${from})
    kolo_precompile_for(${kind} ${from})
  endif()
  target_precompile_headers(${target} REUSE_FROM ${from})
endfunction()
