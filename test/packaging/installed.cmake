# What the scripts of this folder share: a command that must succeed, and a project built against kolo.

# run(WHAT COMMAND...)   leaves its words in `output`
function(run what)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${what} failed (${status}):\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

# Debug is quicker to build, and nothing need be fast here.
set(options -G ${generator} -D CMAKE_BUILD_TYPE=Debug -D CMAKE_CXX_COMPILER=${compiler} "-D CMAKE_CXX_FLAGS=${flags}"
            -D CMAKE_CXX_COMPILER_LAUNCHER=${launcher})
