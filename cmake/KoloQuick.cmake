# Precompiled headers: reading the same headers takes half of the time in which a source of the libraries is compiled.
#
# KOLO_QUICK is ON in builds without tests and in the sanitizer presets. The other presets have it OFF, so they find a missing
# include in a source of the libraries. Tests and programs use precompiled headers in every tree.
#
# kolo_precompiled(TARGET FOR KIND)   the sources of TARGET start with the precompiled headers of their kind: libraries,
#                                     libraries_for_size (kolo_for_size), programs or tests
#
# Tests and the libraries of programs are also unity builds of five sources, in every tree (KoloTest.cmake,
# KoloComponent.cmake).
#
# A source with its own compile options needs SKIP_PRECOMPILE_HEADERS: g++ rejects headers precompiled with other options.

set(is_quick ON)
if(KOLO_BUILD_TESTS)
  set(is_quick OFF)
endif()
option(KOLO_QUICK "Precompile headers of the libraries: faster, but blind to a missing include" ${is_quick})

set(KOLO_PRECOMPILED_libraries <algorithm> <array> <chrono> <cstdint> <cstring> <functional> <map> <memory> <optional> <span>
    <stdexcept> <string> <string_view> <thread> <utility> <vector> <fmt/format.h> <fmt/ranges.h>)
set(KOLO_PRECOMPILED_libraries_for_size ${KOLO_PRECOMPILED_libraries})
set(KOLO_PRECOMPILED_programs ${KOLO_PRECOMPILED_libraries} <filesystem> <fstream> <nlohmann/json.hpp>)
# No header of this tree: its path differs from clone to clone, and so would what a compiler cache knows of the precompiled
# headers. Also, g++ uses old precompiled headers while it makes new ones, and would keep an old text of it.
set(KOLO_PRECOMPILED_tests <algorithm> <array> <chrono> <cmath> <cstring>
    <filesystem> <fstream> <functional> <memory> <numeric> <set> <stdexcept> <string> <thread> <vector>)

# Most test code runs once, so compiling it takes longer than running it: use -Og. (There g++'s maybe-uninitialized is unreliable.)
set(KOLO_TEST_OPTIONS $<$<CONFIG:Release>:-Og> $<$<CONFIG:Release>:-Wno-maybe-uninitialized>)

# UBSan checks the tested code only: instrumenting the tests as well would double their compile time.
if(CMAKE_CXX_FLAGS MATCHES "-fsanitize=[a-z,]*undefined")
  list(APPEND KOLO_TEST_OPTIONS -fno-sanitize=undefined)
endif()

# A target with an empty source that compiles the headers. Programs and libraries need one each, since their flags differ.
function(kolo_precompile_for kind target)
  set(source ${PROJECT_BINARY_DIR}/generated/precompiled.cpp)
  file(CONFIGURE OUTPUT ${source} CONTENT "int main() {}\n")
  if(NOT kind STREQUAL tests)
    add_library(${target} OBJECT ${source})
    target_compile_options(${target} PRIVATE ${KOLO_LIBRARY_OPTIONS})
    set_target_properties(${target} PROPERTIES CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
    target_link_libraries(${target} PRIVATE kolo::formatting)
    if(kind STREQUAL libraries_for_size)
      target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-Os>)
    elseif(kind STREQUAL programs)
      target_link_libraries(${target} PRIVATE nlohmann_json::nlohmann_json)
    endif()
  else()
    add_executable(${target} ${source})
    target_link_libraries(${target} PRIVATE kolo_catch)
    target_compile_options(${target} PRIVATE ${KOLO_TEST_OPTIONS})
    set(catch <catch2/catch_all.hpp>)
    if(Catch2_VERSION VERSION_LESS 3)
      set(catch <catch2/catch.hpp>)
    endif()
    list(PREPEND KOLO_PRECOMPILED_tests ${catch})
  endif()
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR})
  kolo_flags(${target})
  target_precompile_headers(${target} PRIVATE ${KOLO_PRECOMPILED_${kind}})
endfunction()

function(kolo_precompiled target _ kind)
  if(NOT KOLO_QUICK AND kind MATCHES "^libraries")
    return()
  endif()
  set(from kolo_precompiled_for_${kind})
  if(NOT TARGET ${from})
    kolo_precompile_for(${kind} ${from})
  endif()
  target_precompile_headers(${target} REUSE_FROM ${from})
endfunction()
