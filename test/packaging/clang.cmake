# Test script (cmake -P): the libraries build without a warning with a version of clang.
#
#   version                       of clang
#   source, generator, launcher   those of kolo
#   directory                     working folder; removed first

include(${CMAKE_CURRENT_LIST_DIR}/installed.cmake)
find_program(clang clang++-${version})
if(NOT clang)
  message("skipped: there is no clang++-${version}")
  return()
endif()
file(REMOVE_RECURSE ${directory})
run("configuring" ${CMAKE_COMMAND} -S ${source} -B ${directory} -G ${generator} -D CMAKE_BUILD_TYPE=Debug
    -D CMAKE_CXX_COMPILER=${clang} -D CMAKE_CXX_COMPILER_LAUNCHER=${launcher} -D KOLO_WERROR=ON -D KOLO_CUDA=OFF
    -D KOLO_BUILD_TESTS=OFF -D KOLO_BUILD_BENCH=OFF -D KOLO_BUILD_TRAIN=OFF)
run("building" ${CMAKE_COMMAND} --build ${directory})
