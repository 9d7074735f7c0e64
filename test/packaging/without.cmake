# Configures kolo without UCX, because KOLO_WITHOUT says so, and without libfabric, because its header is not found; looks for
# the words of who asks for them, and compiles what a build without them has in their place: single sources, not the
# tree. Run with cmake -P by ctest.
#
#   source, generator, compiler, launcher, flags, deps   those of kolo
#   hidden      the folder of libfabric's header, if it is there
#   directory   where to work; removed first

include(${CMAKE_CURRENT_LIST_DIR}/installed.cmake)
file(REMOVE_RECURSE ${directory})
run("configuring" ${CMAKE_COMMAND} -S ${source} -B ${directory} ${options} "-D KOLO_WITHOUT=ucx" "-D CMAKE_IGNORE_PATH=${hidden}"
                  "-D KOLO_DEPS=${deps}" -D KOLO_WERROR=ON -D KOLO_CUDA=OFF -D KOLO_BUILD_TESTS=OFF -D KOLO_BUILD_TRAIN=OFF)

file(READ ${directory}/generated/transport_left_out.inc left_out)
foreach(row "ucx, \"KOLO_WITHOUT names it\", \"take it out of KOLO_WITHOUT (it wants libucx-dev,"
            "ofi, \"rdma/fabric.h was not found\", \"install libfabric-dev ")
  string(FIND "${left_out}" "KOLO_LEFT_OUT(${row}" place)
  if(place EQUAL -1)
    message(FATAL_ERROR "expected a row that begins with KOLO_LEFT_OUT(${row}:\n${left_out}")
  endif()
endforeach()

foreach(object transports/CMakeFiles/kolo_transports.dir/left_out.cpp.o bench/CMakeFiles/kolo_bench.dir/no_ucx_pipe.cpp.o
               bench/CMakeFiles/kolo_bench.dir/no_libfabric_pipe.cpp.o)
  run("compiling" ${CMAKE_COMMAND} --build ${directory} --target ${object})
endforeach()
