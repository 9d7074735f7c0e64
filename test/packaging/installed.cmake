# Functions for the scripts of this folder: run a command that must succeed, the options of a project that uses kolo, and a
# check of the libraries that a program needs.

# run(WHAT COMMAND...)   runs a command that must succeed; sets `output`
function(run what)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${what} failed (${status}):\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

# The program needs no shared library but the C and C++ runtime. Not checked under sanitizers, which add others.
function(links_only_the_runtime program library)
  if(flags MATCHES sanitize)
    return()
  endif()
  run("ldd" ldd ${program})
  string(REGEX MATCHALL "[^\n]+" needed "${output}")
  foreach(file IN LISTS needed)
    if(NOT file MATCHES "(linux-vdso|libstdc[+][+]|libc[+][+]|libm|libgcc_s|libc|libpthread|libdl|librt|ld-linux[^ ]*)[.]so")
      message(FATAL_ERROR "a program that links ${library} also needs:${file}\n"
                          "The library links nothing but the C++ runtime.")
    endif()
  endforeach()
endfunction()

# Debug builds faster, and these programs need not be fast.
set(options -G ${generator} -D CMAKE_BUILD_TYPE=Debug -D CMAKE_CXX_COMPILER=${compiler} "-D CMAKE_CXX_FLAGS=${flags}"
            -D CMAKE_CXX_COMPILER_LAUNCHER=${launcher})
