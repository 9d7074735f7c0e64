# Test script (cmake -P): kolo is cross-compiled for aarch64 and installed; programs in C build with it in every way. Under QEMU,
# two and four ranks of them work over shm and tcp. QEMU runs the instructions of aarch64, but with the memory order of this
# machine, so it does not show a missing barrier.
#
#   source, build, generator, launcher   those of kolo; its kolo-run, for this machine, starts the ranks
#   directory                            working folder; removed first

include(${CMAKE_CURRENT_LIST_DIR}/installed.cmake)
find_program(cross_compiler aarch64-linux-gnu-g++)
if(NOT cross_compiler)
  message("skipped: there is no aarch64-linux-gnu-g++ (cmake/setup.sh --with cross)")
  return()
endif()
file(REMOVE_RECURSE ${directory})
set(toolchain ${source}/cmake/aarch64.cmake)
set(options -G ${generator} -D CMAKE_TOOLCHAIN_FILE=${toolchain} -D CMAKE_BUILD_TYPE=Release
            -D CMAKE_CXX_COMPILER_LAUNCHER=${launcher})
run("configuring kolo" ${CMAKE_COMMAND} -S ${source} -B ${directory}/kolo ${options} -D KOLO_BUILD_TESTS=OFF
    -D KOLO_BUILD_BENCH=OFF -D KOLO_BUILD_TRAIN=OFF -D KOLO_CUDA=OFF -D KOLO_WERROR=ON)
run("building kolo" ${CMAKE_COMMAND} --build ${directory}/kolo)
run("installing kolo" ${CMAKE_COMMAND} --install ${directory}/kolo --prefix ${directory}/prefix)

run("configuring" ${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR}/c_program -B ${directory}/program ${options}
    -D CMAKE_PREFIX_PATH=${directory}/prefix)
run("building" ${CMAKE_COMMAND} --build ${directory}/program)
file(GLOB_RECURSE library ${directory}/prefix/libkolo.so)
get_filename_component(libraries ${library} DIRECTORY)
run("aarch64-linux-gnu-gcc" aarch64-linux-gnu-gcc -std=c11 -O2 -Wall -Wextra -Werror
    ${source}/collectives/examples/tensor_parallel.c -o ${directory}/tensor_parallel
    -I${directory}/prefix/include/kolo -L${libraries} -lkolo -Wl,-rpath,${libraries})

find_program(qemu qemu-aarch64)
if(NOT qemu)
  message("skipped: the programs build, but there is no qemu-aarch64 to run them (cmake/setup.sh --with cross)")
  return()
endif()
foreach(transport shm tcp)
  foreach(ranks 2 4)
    foreach(program program/with_kolo program/with_c tensor_parallel)
      run("${program}: ${ranks} ranks over ${transport}" ${CMAKE_COMMAND} -E env KOLO_TRANSPORT=${transport}
          ${build}/bin/kolo-run -n ${ranks} -- ${qemu} -L /usr/aarch64-linux-gnu ${directory}/${program})
      message("${output}")
      if(program MATCHES "with" AND NOT output MATCHES "over ${transport}: the sum of ${ranks} ranks is ")
        message(FATAL_ERROR "${program} has not worked over ${transport}")
      endif()
    endforeach()
  endforeach()
endforeach()
