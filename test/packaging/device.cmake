# Builds the example that sums on streams with kolo as it is after `cmake --install`, by the component device and without
# naming one; then looks for the words of who cannot have kolo::device. Run with cmake -P by ctest.
#
#   is_built    whether this kolo was built with CUDA
#   source, build, generator, compiler, launcher, flags         those of kolo
#   toolkit     the folder of the CUDA Toolkit that kolo was built with
#   directory   where to work; removed first

include(${CMAKE_CURRENT_LIST_DIR}/installed.cmake)
file(REMOVE_RECURSE ${directory})
set(prefix ${directory}/prefix)
run("installing" ${CMAKE_COMMAND} --install ${build} --component development --prefix ${prefix})
list(APPEND options -D CMAKE_PREFIX_PATH=${prefix} -D EXAMPLE=${source}/collectives/examples/sum_on_streams.cpp)
set(project ${CMAKE_CURRENT_LIST_DIR}/device)

# refuses(WORDS OPTION...)   the component cannot be had, and CMake says why
function(refuses words)
  file(REMOVE_RECURSE ${directory}/refused)
  execute_process(COMMAND ${CMAKE_COMMAND} -S ${project} -B ${directory}/refused ${options} -D COMPONENTS=device ${ARGN}
                  RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  string(REGEX REPLACE "[ \n]+" " " output "${output}")
  if(status EQUAL 0 OR NOT output MATCHES "${words}")
    message(FATAL_ERROR "expected a refusal with \"${words}\" (${status}):\n${output}")
  endif()
endfunction()

# Nobody else is asked for a toolkit, and who names no component hears of what is not there in one line.
function(does_without words)
  run("configuring without a toolkit" ${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR}/consumer -B ${directory}/without ${options}
                                      -D CMAKE_DISABLE_FIND_PACKAGE_CUDAToolkit=ON)
  if(NOT output MATCHES "kolo: no kolo::device: [^\n]*${words}")
    message(FATAL_ERROR "who names no component does not hear \"${words}\":\n${output}")
  endif()
  run("building without a toolkit" ${CMAKE_COMMAND} --build ${directory}/without)
endfunction()

refuses("there is no component devise: there are [a-z, ]*collectives[a-z, ]*, device .where kolo has CUDA." -D COMPONENTS=devise)
if(NOT is_built)
  refuses("no kolo::device: this kolo was built without CUDA")
  does_without("this kolo was built without CUDA")
  return()
endif()

list(APPEND options -D CUDAToolkit_ROOT=${toolkit})
foreach(components IN ITEMS "device" "" "collectives device")
  string(MAKE_C_IDENTIFIER "build ${components}" place)
  run("configuring" ${CMAKE_COMMAND} -S ${project} -B ${directory}/${place} ${options} "-D COMPONENTS=${components}")
endforeach()
run("building" ${CMAKE_COMMAND} --build ${directory}/build_device)
run("building" ${CMAKE_COMMAND} --build ${directory}/build_)

# Where there is no device it says so, and ends with 1: that it starts at all, without a driver, is what it is linked for.
set(program ${directory}/build_device/program)
execute_process(COMMAND ${program} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
message("${output}")
if(NOT (status EQUAL 0 AND output MATCHES "rank 1 of 2 on device [0-9]+: the sum is 3\n") AND
   NOT (status EQUAL 1 AND output MATCHES "NVIDIA driver"))
  message(FATAL_ERROR "the program neither sums nor says what is missing (${status}):\n${output}")
endif()
links_only_the_runtime(${program} kolo::device)

# Where there is no toolkit, or another, it is said.
does_without("it needs the CUDA Toolkit")
refuses("no kolo::device: it needs the CUDA Toolkit" -D CMAKE_DISABLE_FIND_PACKAGE_CUDAToolkit=ON)
file(WRITE ${directory}/other/FindCUDAToolkit.cmake
     "set(CUDAToolkit_VERSION 99.1)\nadd_library(CUDA::cudart_static INTERFACE IMPORTED)\n")
refuses("no kolo::device: it was built with CUDA [0-9.]+, and found is the CUDA Toolkit 99.1"
        -D CMAKE_MODULE_PATH=${directory}/other)

# A kolo without CUDA, installed over one with it, leaves the files of the other.
run("configuring without CUDA" ${CMAKE_COMMAND} -S ${source} -B ${directory}/no_cuda -G ${generator} -D CMAKE_CXX_COMPILER=${compiler}
                               -D KOLO_CUDA=OFF -D KOLO_BUILD_TESTS=OFF -D KOLO_BUILD_BENCH=OFF -D KOLO_BUILD_TRAIN=OFF)
file(GLOB config ${prefix}/lib*/cmake/kolo/koloConfig.cmake ${prefix}/lib/*/cmake/kolo/koloConfig.cmake)
file(COPY_FILE ${directory}/no_cuda/package-files/koloConfig.cmake ${config})
refuses("no kolo::device: this kolo was built without CUDA")
