# Test script (cmake -P): builds and runs consumer/ with the installed kolo, or with kolo as a subdirectory.
#
#   way         installed, or subdirectory
#   source, build, generator, compiler, launcher, flags         those of kolo
#   directory   working folder; removed first

include(${CMAKE_CURRENT_LIST_DIR}/installed.cmake)
file(REMOVE_RECURSE ${directory})
if(way STREQUAL installed)
  run("installing" ${CMAKE_COMMAND} --install ${build} --component development --prefix ${directory}/prefix)
  # CMake finds the installed kolo through PATH, and not the build tree, although that comes first in PATH.
  set(ENV{PATH} "${build}/bin:${directory}/prefix/bin:$ENV{PATH}")
  if(NOT EXISTS ${directory}/prefix/share/doc/kolo/LICENSE)
    message(FATAL_ERROR "the licence, which goes with the libraries, is not installed")
  endif()
else()
  # No device code, which another test here covers.
  list(APPEND options -D KOLO_SOURCE=${source} -D KOLO_CUDA=OFF)
endif()
run("configuring" ${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR}/consumer -B ${directory}/build ${options})
run("building" ${CMAKE_COMMAND} --build ${directory}/build)
run("the program" ${directory}/build/consumer)
message("${output}")
if(way STREQUAL subdirectory)
  run("the program in C" ${directory}/build/consumer_in_c)
  message("${output}")
endif()

links_only_the_runtime(${directory}/build/consumer kolo::collectives)
