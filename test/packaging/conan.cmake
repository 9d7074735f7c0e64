# Test script (cmake -P): `conan create` makes a package of kolo with fmt's headers of the system, and builds and runs consumer/
# with it.
#
#   source, launcher   those of kolo
#   directory          working folder; removed first

include(${CMAKE_CURRENT_LIST_DIR}/installed.cmake)
find_program(conan conan)
if(NOT conan)
  message("skipped: there is no conan (pip install conan)")
  return()
endif()
file(REMOVE_RECURSE ${directory})
file(COPY ${CMAKE_CURRENT_LIST_DIR}/consumer DESTINATION ${directory})
set(ENV{CONAN_HOME} ${directory}/home)
set(ENV{CMAKE_CXX_COMPILER_LAUNCHER} ${launcher})
run("conan profile" ${conan} profile detect)
run("conan create" ${conan} create ${source}/cmake -s compiler.cppstd=20 -s build_type=Debug -o "kolo/*:system_fmt=True"
    --test-folder ${directory}/consumer)
if(NOT output MATCHES "both ranks have the sum 3 and 3")
  message(FATAL_ERROR "the consumer has not run:\n${output}")
endif()
