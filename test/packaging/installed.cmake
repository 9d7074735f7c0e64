# What the scripts of this folder share: a command that must succeed, a project built against kolo, and what a
# program may need where it runs.

# run(WHAT COMMAND...)   leaves its words in `output`
function(run what)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${what} failed (${status}):\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

# Nothing but the C++ runtime, and what sanitizers add to any program.
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

# Debug is quicker to build, and nothing need be fast here.
set(options -G ${generator} -D CMAKE_BUILD_TYPE=Debug -D CMAKE_CXX_COMPILER=${compiler} "-D CMAKE_CXX_FLAGS=${flags}"
            -D CMAKE_CXX_COMPILER_LAUNCHER=${launcher})
