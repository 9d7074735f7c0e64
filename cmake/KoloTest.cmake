# kolo_test(NAME SOURCES... LIBS targets... [LABELS words...])
#                                              one Catch2 program, each of its cases a ctest of its own: NAME.case
#
# A case that cannot run here says so with WARN("skipped: why") and returns; ctest then counts it as skipped.
# The label `slow` keeps a program out of the sanitizers' runs.
#
# Catch2 2.13 (Debian 12) and 3 (later) differ in header and main; test/support/catch.h and kolo_catch hide that.

if(NOT KOLO_BUILD_TESTS)
  return()
endif()
find_package(Catch2 REQUIRED)
include(Catch)

function(kolo_test name)
  cmake_parse_arguments(arg "" "" "LIBS;LABELS" ${ARGN})
  if(NOT TARGET kolo_catch)
    if(TARGET Catch2::Catch2WithMain)
      add_library(kolo_catch INTERFACE)
      target_link_libraries(kolo_catch INTERFACE Catch2::Catch2WithMain)
    else()
      add_library(kolo_catch STATIC ${PROJECT_SOURCE_DIR}/test/support/catch2_main.cpp)
      target_link_libraries(kolo_catch PUBLIC Catch2::Catch2)
    endif()
  endif()
  kolo_program(${name} ${arg_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE kolo_catch ${arg_LIBS})
  kolo_precompiled(${name} FOR tests)
  catch_discover_tests(${name} TEST_PREFIX "${name}."
                       PROPERTIES TIMEOUT 600 SKIP_REGULAR_EXPRESSION "skipped: " LABELS "${arg_LABELS}")
endfunction()
