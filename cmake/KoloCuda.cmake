# CUDA support: the option KOLO_CUDA and the search for nvcc.
#
# KOLO_CUDA builds the kernels for NVIDIA devices; the default is ON if nvcc is found, except in a cross build. It enables CUDA
# as a language of the project; kolo_flags (KoloComponent.cmake) has flags for .cu files.
#
# nvcc may be found and not work, for example because it is too old for the host's g++. Then CUDA is left out with a message.
# If KOLO_CUDA was requested (preset cuda), that is an error with nvcc's output.
#
# Programs link the static runtime, which loads the driver (libcuda.so) at first use. So one binary runs on machines with and
# without a device.

# True if KOLO_CUDA was set on the command line, by a preset or by an earlier run.
set(kolo_cuda_was_asked_for FALSE)
if(DEFINED KOLO_CUDA)
  set(kolo_cuda_was_asked_for ${KOLO_CUDA})
endif()

find_program(KOLO_NVCC NAMES "$ENV{CUDACXX}" nvcc HINTS ENV CUDA_HOME ENV CUDA_PATH PATH_SUFFIXES bin
             PATHS /usr/local/cuda /opt/cuda DOC "NVIDIA's compiler, for KOLO_CUDA")
mark_as_advanced(KOLO_NVCC)
set(kolo_cuda_default OFF)
if(KOLO_NVCC AND PROJECT_IS_TOP_LEVEL AND NOT CMAKE_CROSSCOMPILING)
  set(kolo_cuda_default ON)
endif()
option(KOLO_CUDA "Build the kernels for NVIDIA's devices" ${kolo_cuda_default})

if(NOT KOLO_CUDA)
  if(KOLO_NVCC)
    message(STATUS "kolo: CUDA left out: KOLO_CUDA is off")
  else()
    message(STATUS "kolo: CUDA left out: nvcc not found")
  endif()
  return()
endif()

if(KOLO_NVCC AND NOT DEFINED CMAKE_CUDA_COMPILER)
  set(CMAKE_CUDA_COMPILER ${KOLO_NVCC})
endif()
# All objects that are linked together come from one host compiler.
if(NOT DEFINED CMAKE_CUDA_HOST_COMPILER AND NOT DEFINED ENV{CUDAHOSTCXX})
  set(CMAKE_CUDA_HOST_COMPILER ${CMAKE_CXX_COMPILER})
endif()
if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES 90 CACHE STRING "Devices to compile for, by compute capability")
endif()
set(CMAKE_CUDA_RUNTIME_LIBRARY Static)

if(NOT kolo_cuda_was_asked_for)
  include(CheckLanguage)
  check_language(CUDA)
  if(NOT CMAKE_CUDA_COMPILER)
    message(STATUS "kolo: CUDA left out: ${KOLO_NVCC} does not work here (see CMakeFiles/CMakeError.log)")
    set_property(CACHE KOLO_CUDA PROPERTY VALUE OFF)
    return()
  endif()
endif()
enable_language(CUDA)
if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake 3.25.1 does not know that nvcc 12 and later have it
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
endif()
set(CMAKE_CUDA_STANDARD 20)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
set(CMAKE_CUDA_EXTENSIONS OFF)
message(STATUS "kolo: CUDA ${CMAKE_CUDA_COMPILER_VERSION} for compute capabilities ${CMAKE_CUDA_ARCHITECTURES}")

# kolo_find_in_python(VARIABLE FOLDER FILE): sets VARIABLE to the path of a library, or to nothing. It looks beside the toolkit,
# in the system's folders, and in FOLDER under site-packages, where NVIDIA's packages from PyPI install it.
function(kolo_find_in_python variable folder file)
  find_package(Python3 QUIET COMPONENTS Interpreter)
  set(where)
  if(Python3_Interpreter_FOUND)
    execute_process(COMMAND ${Python3_EXECUTABLE} -c "import site, sys; print(';'.join(site.getsitepackages() + [site.getusersitepackages()]))"
                    OUTPUT_VARIABLE sites OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    foreach(site IN LISTS sites)
      list(APPEND where ${site}/${folder})
    endforeach()
  endif()
  get_filename_component(beside "${CMAKE_CUDA_COMPILER}" DIRECTORY)
  find_file(${variable} ${file} HINTS ${beside}/../lib64 ${beside}/../lib PATHS /usr/local/lib /usr/lib/${CMAKE_LIBRARY_ARCHITECTURE} /usr/lib64
            ${where} DOC "Path of ${file}, which is loaded at first use")
  mark_as_advanced(${variable})
  if(${variable})
    set(${variable} "${${variable}}" PARENT_SCOPE)
  else()
    set(${variable} "" PARENT_SCOPE)
  endif()
endfunction()
