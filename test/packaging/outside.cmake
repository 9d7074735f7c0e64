# Builds outside/ against kolo as it is after `cmake --install`, proves its transport and uses it; run with cmake -P by ctest.
#
#   build, generator, compiler, launcher, flags         those of kolo
#   directory   where to work; removed first

include(${CMAKE_CURRENT_LIST_DIR}/installed.cmake)
file(REMOVE_RECURSE ${directory})
foreach(component development programs)
  run("installing" ${CMAKE_COMMAND} --install ${build} --component ${component} --prefix ${directory}/prefix)
endforeach()
run("configuring" ${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR}/outside -B ${directory}/build ${options}
                  -D CMAKE_PREFIX_PATH=${directory}/prefix)
run("building" ${CMAKE_COMMAND} --build ${directory}/build)
file(READ ${CMAKE_CURRENT_LIST_DIR}/outside/unix_transport.c text)
string(REGEX REPLACE "[^\n]" "" newlines "${text}")
string(LENGTH "${newlines}" length)
if(length GREATER_EQUAL 300)
  message(FATAL_ERROR "unix_transport.c has ${length} lines: an example that is read in an afternoon has fewer than 300")
endif()

set(library ${directory}/build/unix_transport.so)
set(programs ${directory}/prefix/bin)
run("kolo-conformance" ${programs}/kolo-conformance --transport ${library})
message("${output}")
run("the clauses over the registered table" ${directory}/build/prove --transport unix --clause processes --clause credit)
message("${output}")
foreach(ranks 2 4)
  run("kolo-bench" ${programs}/kolo-bench allreduce --transport ${library} --ranks ${ranks} --min-bytes 8 --max-bytes 2M
                   --factor 64 --seconds 0.1 --passes 1)
  message("${output}")
endforeach()
run("kolo-train" ${CMAKE_COMMAND} -E env KOLO_TRANSPORT=${library} ${programs}/kolo-train train --ranks 2 --model small
                 --train-size 101 --test-size 33 --batch-size 16 --epochs 1 --hash-every 2)
message("${output}")
