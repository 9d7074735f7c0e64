# Test script (cmake -P): runs the commands of the installed guide for external transports unchanged, in a fresh folder; then
# checks the guide's statements about the example.
#
#   build, generator, compiler, launcher, flags         those of kolo
#   directory   working folder; removed first

include(${CMAKE_CURRENT_LIST_DIR}/installed.cmake)
file(REMOVE_RECURSE ${directory})
set(prefix ${directory}/prefix)
foreach(component development programs)
  run("installing" ${CMAKE_COMMAND} --install ${build} --component ${component} --prefix ${prefix})
endforeach()
file(READ ${prefix}/share/kolo/example/unix_transport.c text)
string(REGEX REPLACE "[^\n]" "" newlines "${text}")
string(LENGTH "${newlines}" length)
if(length GREATER_EQUAL 300)
  message(FATAL_ERROR "unix_transport.c has ${length} lines: an example that is read in an afternoon has fewer than 300")
endif()

# Indented lines between the guide's marks are commands.
run("sed" sed -n "/^<!-- tried: these/,/^<!-- tried: ends/s/^    //p" ${prefix}/share/doc/kolo/transports/GUIDE.md)
set(script "set -ex\n${output}")
foreach(must IN ITEMS "kolo-conformance --transport" "kolo-bench allreduce" "kolo-run" "kolo-train" "sanitized/prove")
  if(NOT script MATCHES "${must}")
    message(FATAL_ERROR "the guide has no command with ${must} between its marks")
  endif()
endforeach()
file(WRITE ${directory}/commands.sh "${script}")
set(environment ${CMAKE_COMMAND} -E env PREFIX=${prefix} CMAKE_GENERATOR=${generator} CXX=${compiler} CFLAGS=-Werror
                "CXXFLAGS=${flags}" CMAKE_CXX_COMPILER_LAUNCHER=${launcher})
file(MAKE_DIRECTORY ${directory}/afternoon)
run("the guide" ${CMAKE_COMMAND} -E chdir ${directory}/afternoon ${environment} sh ${directory}/commands.sh)
message("${output}")
if(NOT output MATCHES " 0 failed" OR output MATCHES "FAILED")
  message(FATAL_ERROR "kolo-conformance has not said that nothing failed")
endif()

# The example also passes as a test of ctest, and builds without a C++ compiler: a transport needs no C++ and no library.
set(mine ${directory}/afternoon/my_transport)
run("ctest" ctest --test-dir ${mine}/build --output-on-failure)
run("configuring in C alone" ${CMAKE_COMMAND} -E env CXX=no-such-compiler CMAKE_GENERATOR=${generator}
                             ${CMAKE_COMMAND} -S ${mine} -B ${directory}/in_c -D CMAKE_PREFIX_PATH=${prefix})
run("building in C alone" ${CMAKE_COMMAND} --build ${directory}/in_c)
run("ldd" ldd ${directory}/in_c/unix_transport.so)
if(output MATCHES "stdc|kolo|not found" OR EXISTS ${directory}/in_c/prove)
  message(FATAL_ERROR "a transport in C needs more than C:\n${output}")
endif()

# An unknown option is an error; it must not be ignored.
execute_process(COMMAND ${prefix}/bin/kolo-bench allreduce --transport ${mine}/build/unix_transport.so?lanes=2 --ranks 2
                        --max-bytes 8 RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
if(status EQUAL 0 OR NOT output MATCHES "unix: it has no options" OR output MATCHES "Invalid argument")
  message(FATAL_ERROR "the example took an option that it does not have (${status}):\n${output}")
endif()
