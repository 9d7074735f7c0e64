# Test script (cmake -P): configures kolo without UCX (KOLO_WITHOUT) and without libfabric (header not found), then with
# headers of both that are too old. Checks the messages that users of these transports get, and compiles the sources that
# replace them.
#
#   source, generator, compiler, launcher, flags, deps   those of kolo
#   hidden      the folder of libfabric's header, if it is there
#   directory   working folder; removed first

include(${CMAKE_CURRENT_LIST_DIR}/installed.cmake)

# require_left_out(BUILD ROW...)   each ROW is the beginning of a row in the table of left-out transports
function(require_left_out build)
  file(READ ${build}/generated/transport_left_out.inc left_out)
  foreach(row IN LISTS ARGN)
    string(FIND "${left_out}" "KOLO_LEFT_OUT(${row}" place)
    if(place EQUAL -1)
      message(FATAL_ERROR "expected a row that begins with KOLO_LEFT_OUT(${row}:\n${left_out}")
    endif()
  endforeach()
endfunction()

file(REMOVE_RECURSE ${directory})
run("configuring" ${CMAKE_COMMAND} -S ${source} -B ${directory} ${options} "-D KOLO_WITHOUT=ucx" "-D CMAKE_IGNORE_PATH=${hidden}"
                  "-D KOLO_DEPS=${deps}" -D KOLO_WERROR=ON -D KOLO_CUDA=OFF -D KOLO_BUILD_TESTS=OFF -D KOLO_BUILD_TRAIN=OFF)

require_left_out(${directory} "ucx, \"KOLO_WITHOUT names it\", \"take it out of KOLO_WITHOUT (it needs libucx-dev,"
                              "ofi, \"rdma/fabric.h was not found\", \"install libfabric-dev ")

# Headers that are too old.
file(WRITE ${directory}/older/ucp/api/ucp.h "")
file(WRITE ${directory}/older/ucp/api/ucp_version.h "#define UCP_API_MAJOR 1\n#define UCP_API_MINOR 9\n")
file(WRITE ${directory}/older/rdma/fabric.h "#define FI_MAJOR_VERSION 1\n#define FI_MINOR_VERSION 16\n")
run("configuring" ${CMAKE_COMMAND} -S ${source} -B ${directory}/with_older ${options} "-D CMAKE_INCLUDE_PATH=${directory}/older"
                  "-D KOLO_DEPS=${deps}" -D KOLO_WERROR=ON -D KOLO_CUDA=OFF -D KOLO_BUILD_TESTS=OFF -D KOLO_BUILD_TRAIN=OFF)
require_left_out(${directory}/with_older
  "ucx, \"ucp/api/ucp_version.h is of version 1.9, older than 1.13\", \"install libucx-dev (Debian's name) of that version or a later"
  "ofi, \"rdma/fabric.h is of version 1.16, older than 1.17\", \"install libfabric-dev (Debian's name) of that version or a later")

foreach(object transports/CMakeFiles/kolo_transports_for_size.dir/base/disabled_transports.cpp.o bench/CMakeFiles/kolo_bench.dir/p2p/no_ucx_pipe.cpp.o
               bench/CMakeFiles/kolo_bench.dir/p2p/no_libfabric_pipe.cpp.o)
  run("compiling" ${CMAKE_COMMAND} --build ${directory} --target ${object})
endforeach()
