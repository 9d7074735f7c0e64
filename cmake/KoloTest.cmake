# kolo_test(NAME SOURCES... LIBS targets... [APART sources...] [LABELS words...] [COST seconds])
#     One Catch2 program; each of its cases is a test of ctest: NAME.case
#
# SOURCES are a unity build, which halves the compile time. APART: sources that are compiled alone, because their names clash.
# A case that cannot run here calls WARN("skipped: why") and returns; ctest then counts it as skipped.
# Label `slow`: neither built nor run under sanitizers. Labels `one_thread`, `program`: not built with KOLO_THREADS_ONLY.
# Several labels are one word with commas, as catch_discover_tests would keep only the first of a list.
# A program of COST 20 or more gets the label `long`, which `test/run.sh --quick` leaves out.
# COST: seconds under a sanitizer, roughly. ctest starts the highest COST first, so that no long case runs alone at the end.
#
# Catch2 2.13 (Debian 12) and 3 differ in header and main; test/support/catch.h and kolo_catch hide that.

if(NOT KOLO_BUILD_TESTS)
  return()
endif()
option(KOLO_THREADS_ONLY "Leave out single-threaded tests, in which the thread sanitizer finds nothing" OFF)
find_package(Catch2 REQUIRED)
# About a hundred programs are linked; mold takes a third of the time of GNU ld.
find_program(KOLO_MOLD mold DOC "A fast linker, for builds with tests")
mark_as_advanced(KOLO_MOLD)
if(KOLO_MOLD AND PROJECT_IS_TOP_LEVEL)
  add_link_options(-fuse-ld=mold)
endif()
include(Catch)

function(kolo_test name)
  cmake_parse_arguments(arg "" "COST" "LIBS;APART;LABELS" ${ARGN})
  if(NOT arg_COST)
    set(arg_COST 0)
  endif()
  if(NOT TARGET kolo_catch)
    if(TARGET Catch2::Catch2WithMain)
      add_library(kolo_catch INTERFACE)
      target_link_libraries(kolo_catch INTERFACE Catch2::Catch2WithMain)
    else()
      add_library(kolo_catch STATIC ${PROJECT_SOURCE_DIR}/test/support/catch2_main.cpp)
      target_link_libraries(kolo_catch PUBLIC Catch2::Catch2)
    endif()
  endif()
  kolo_program(${name} ${arg_UNPARSED_ARGUMENTS} ${arg_APART})
  set_target_properties(${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 5)
  set_source_files_properties(${arg_APART} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  target_link_libraries(${name} PRIVATE kolo_catch ${arg_LIBS})
  kolo_precompiled(${name} FOR tests)
  target_compile_options(${name} PRIVATE ${KOLO_TEST_OPTIONS})
  set(is_left_out OFF)
  if(CMAKE_CXX_FLAGS MATCHES "-fsanitize" AND slow IN_LIST arg_LABELS)
    set(is_left_out ON)
  elseif(KOLO_THREADS_ONLY AND (one_thread IN_LIST arg_LABELS OR program IN_LIST arg_LABELS))
    set(is_left_out ON)
  endif()
  if(is_left_out)
    set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL ON)
    return()
  endif()
  if(arg_COST GREATER_EQUAL 20)
    list(APPEND arg_LABELS long)
  endif()
  list(JOIN arg_LABELS "," arg_LABELS)
  # A name that ctest cannot pass on, such as one with a semicolon, would select no case and pass. Catch2 3 fails by itself.
  if(Catch2_VERSION VERSION_LESS 3)
    set(warnings EXTRA_ARGS --warn NoTests)
  endif()
  catch_discover_tests(${name} TEST_PREFIX "${name}." ${warnings}
                       PROPERTIES TIMEOUT 600 COST ${arg_COST} SKIP_REGULAR_EXPRESSION "skipped: " LABELS "${arg_LABELS}")
endfunction()
