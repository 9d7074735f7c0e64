# Builds and runs consumer/ with kolo as it is after `cmake --install`, or as a subdirectory; run with cmake -P by ctest.
#
#   way         installed, or subdirectory
#   source, build, generator, compiler, launcher, flags         those of kolo
#   directory   where to work; removed first

function(run what)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${what} failed (${status}):\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE ${directory})
set(type Debug)  # quicker to build, and the libraries need not be fast here
set(options -G ${generator} -D CMAKE_BUILD_TYPE=${type} -D CMAKE_CXX_COMPILER=${compiler} "-D CMAKE_CXX_FLAGS=${flags}"
            -D CMAKE_CXX_COMPILER_LAUNCHER=${launcher})
if(way STREQUAL installed)
  run("installing" ${CMAKE_COMMAND} --install ${build} --component development --prefix ${directory}/prefix)
  list(APPEND options -D CMAKE_PREFIX_PATH=${directory}/prefix)
else()
  list(APPEND options -D KOLO_SOURCE=${source})
endif()
run("configuring" ${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR}/consumer -B ${directory}/build ${options})
run("building" ${CMAKE_COMMAND} --build ${directory}/build)
run("the program" ${directory}/build/consumer)
message("${output}")

# Nothing but the C++ runtime, and what sanitizers add to any program.
if(NOT flags MATCHES sanitize)
  run("ldd" ldd ${directory}/build/consumer)
  string(REGEX MATCHALL "[^\n]+" libraries "${output}")
  foreach(library IN LISTS libraries)
    if(NOT library MATCHES "(linux-vdso|libstdc[+][+]|libc[+][+]|libm|libgcc_s|libc|libpthread|ld-linux[^ ]*)[.]so")
      message(FATAL_ERROR "a program that links kolo::collectives also needs:${library}\n"
                          "The library links nothing but the C++ runtime.")
    endif()
  endforeach()
endif()
