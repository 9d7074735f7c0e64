# Test script (cmake -P): builds collectives/examples/sum_on_streams.cpp with the installed kolo, with and without COMPONENTS
# device; then checks CMake's messages if kolo::device is not available.
#
#   is_built    whether this kolo was built with CUDA
#   source, build, generator, compiler, launcher, flags         those of kolo
#   toolkit     the folder of the CUDA Toolkit that kolo was built with
#   directory   working folder; removed first

include(${CMAKE_CURRENT_LIST_DIR}/installed.cmake)
file(REMOVE_RECURSE ${directory})
set(prefix ${directory}/prefix)
run("installing" ${CMAKE_COMMAND} --install ${build} --component development --prefix ${prefix})
list(APPEND options -D CMAKE_PREFIX_PATH=${prefix} -D EXAMPLE=${source}/collectives/examples/sum_on_streams.cpp)
set(project ${CMAKE_CURRENT_LIST_DIR}/device)

# refuses(WORDS OPTION...)   configuring with the component device fails with a message that matches WORDS
function(refuses words)
  file(REMOVE_RECURSE ${directory}/refused)
  execute_process(COMMAND ${CMAKE_COMMAND} -S ${project} -B ${directory}/refused ${options} -D COMPONENTS=device ${ARGN}
                  RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  string(REGEX REPLACE "[ \n]+" " " output "${output}")
  if(status EQUAL 0 OR NOT output MATCHES "${words}")
    message(FATAL_ERROR "expected a refusal with \"${words}\" (${status}):\n${output}")
  endif()
endfunction()

# does_without(WORDS)   without COMPONENTS no toolkit is needed, and one line that matches WORDS reports the missing device
function(does_without words)
  run("configuring without a toolkit" ${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR}/consumer -B ${directory}/without ${options}
                                      -D CMAKE_DISABLE_FIND_PACKAGE_CUDAToolkit=ON)
  if(NOT output MATCHES "kolo: no kolo::device: [^\n]*${words}")
    message(FATAL_ERROR "without COMPONENTS CMake does not print \"${words}\":\n${output}")
  endif()
  run("building without a toolkit" ${CMAKE_COMMAND} --build ${directory}/without)
endfunction()

refuses("there is no component devise: expected one of [a-z, ]*collectives[a-z, ]*, device .where kolo has CUDA." -D COMPONENTS=devise)
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

# Without a device the program reports that and ends with 1. It must start without a driver.
set(program ${directory}/build_device/program)
execute_process(COMMAND ${program} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
message("${output}")
if(NOT (status EQUAL 0 AND output MATCHES "rank 1 of 2 on device [0-9]+: the sum is 3\n") AND
   NOT (status EQUAL 1 AND output MATCHES "NVIDIA driver"))
  message(FATAL_ERROR "the program neither sums nor says what is missing (${status}):\n${output}")
endif()
links_only_the_runtime(${program} kolo::device)

# A missing toolkit, and one of another version, are reported.
does_without("it needs the CUDA Toolkit")
refuses("no kolo::device: it needs the CUDA Toolkit" -D CMAKE_DISABLE_FIND_PACKAGE_CUDAToolkit=ON)
file(WRITE ${directory}/other/FindCUDAToolkit.cmake
     "set(CUDAToolkit_VERSION 99.1)\nadd_library(CUDA::cudart_static INTERFACE IMPORTED)\n")
refuses("no kolo::device: it was built with CUDA [0-9.]+, and found is the CUDA Toolkit 99.1"
        -D CMAKE_MODULE_PATH=${directory}/other)

# A kolo without CUDA that is installed over one with CUDA leaves the other's files, which must not be used.
run("configuring without CUDA" ${CMAKE_COMMAND} -S ${source} -B ${directory}/no_cuda -G ${generator} -D CMAKE_CXX_COMPILER=${compiler}
                               -D KOLO_CUDA=OFF -D KOLO_BUILD_TESTS=OFF -D KOLO_BUILD_BENCH=OFF -D KOLO_BUILD_TRAIN=OFF)
file(GLOB config ${prefix}/lib*/cmake/kolo/koloConfig.cmake ${prefix}/lib/*/cmake/kolo/koloConfig.cmake)
file(COPY_FILE ${directory}/no_cuda/package-files/koloConfig.cmake ${config})
refuses("no kolo::device: this kolo was built without CUDA")
