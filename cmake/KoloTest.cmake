# kolo_test(NAME SOURCES... LIBS targets... [APART sources...] [LABELS words...] [COST seconds])
#                                              one Catch2 program, each of its cases a ctest of its own: NAME.case
#
# Some sources are compiled as one, in half the time; those that are APART, since their names are those of others, are not.
# A case that cannot run here says so with WARN("skipped: why") and returns; ctest then counts it as skipped.
# The label `slow` keeps a program out of the sanitizers' runs; `one_thread` out of KOLO_THREADS_ONLY's build.
# A program of COST 20 or more has the label `long`, which `test/run.sh --quick` leaves out.
# ctest begins with what has the highest COST, here some seconds under a sanitizer, so that no long case is alone at the end.
#
# Catch2 2.13 (Debian 12) and 3 (later) differ in header and main; test/support/catch.h and kolo_catch hide that.

if(NOT KOLO_BUILD_TESTS)
  return()
endif()
option(KOLO_THREADS_ONLY "Leave out the tests that have one thread, where the thread sanitizer has nothing to see" OFF)
find_package(Catch2 REQUIRED)
# Some hundred programs are linked, each in a third of the time that GNU's linker takes.
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
  if(KOLO_THREADS_ONLY AND one_thread IN_LIST arg_LABELS)
    set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL ON)
    return()
  endif()
  if(arg_COST GREATER_EQUAL 20)
    list(APPEND arg_LABELS long)
  endif()
  catch_discover_tests(${name} TEST_PREFIX "${name}."
                       PROPERTIES TIMEOUT 600 COST ${arg_COST} SKIP_REGULAR_EXPRESSION "skipped: " LABELS "${arg_LABELS}")
endfunction()
