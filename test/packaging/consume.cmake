# Builds and runs consumer/ with kolo as it is after `cmake --install`, or as a subdirectory; run with cmake -P by ctest.
#
#   way         installed, or subdirectory
#   source, build, generator, compiler, launcher, flags         those of kolo
#   directory   where to work; removed first

include(${CMAKE_CURRENT_LIST_DIR}/installed.cmake)
file(REMOVE_RECURSE ${directory})
if(way STREQUAL installed)
  run("installing" ${CMAKE_COMMAND} --install ${build} --component development --prefix ${directory}/prefix)
  # It is found by its programs' place in the PATH, and the tree in which it was built, whose programs come before, is not.
  set(ENV{PATH} "${build}/bin:${directory}/prefix/bin:$ENV{PATH}")
  if(NOT EXISTS ${directory}/prefix/share/doc/kolo/LICENSE)
    message(FATAL_ERROR "the licence, which goes with the libraries, is not installed")
  endif()
else()
  # A quarter of the time: headers are read once, and device code, which the other tests here link, is left out.
  list(APPEND options -D KOLO_SOURCE=${source} -D KOLO_QUICK=ON -D KOLO_CUDA=OFF)
endif()
run("configuring" ${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR}/consumer -B ${directory}/build ${options})
run("building" ${CMAKE_COMMAND} --build ${directory}/build)
run("the program" ${directory}/build/consumer)
message("${output}")

links_only_the_runtime(${directory}/build/consumer kolo::collectives)
