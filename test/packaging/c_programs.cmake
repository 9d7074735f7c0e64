# Test script (cmake -P): programs in C build with an installed kolo in every way, and run with two ranks. Then the same for a
# Python program through ctypes. The installed folder is moved first, since packages must be relocatable.
#
#   build, generator, compiler, launcher, flags   those of kolo
#   directory                                     working folder; removed first

include(${CMAKE_CURRENT_LIST_DIR}/installed.cmake)
set(program ${CMAKE_CURRENT_LIST_DIR}/c_program)
file(REMOVE_RECURSE ${directory})
foreach(component development runtime)
  run("installing" ${CMAKE_COMMAND} --install ${build} --component ${component} --prefix ${directory}/before)
endforeach()
file(RENAME ${directory}/before ${directory}/prefix)
file(GLOB_RECURSE library ${directory}/prefix/libkolo.so)
file(GLOB_RECURSE pc ${directory}/prefix/kolo.pc)
get_filename_component(libraries ${library} DIRECTORY)
set(ENV{LD_LIBRARY_PATH} ${libraries})

# expect(TEXT)   the last command has printed the text
function(expect text)
  if(NOT output MATCHES "${text}")
    message(FATAL_ERROR "expected '${text}' in:\n${output}")
  endif()
endfunction()

# two_ranks(COMMAND...)   runs it as ranks 0 and 1
function(two_ranks)
  run("${ARGN}" ${build}/bin/kolo-run -n 2 -- ${ARGN})
  set(output "${output}" PARENT_SCOPE)
endfunction()

# With CMake.
run("configuring" ${CMAKE_COMMAND} -S ${program} -B ${directory}/build ${options} -D CMAKE_PREFIX_PATH=${directory}/prefix
    "-D CMAKE_C_FLAGS=${flags}")
run("building" ${CMAKE_COMMAND} --build ${directory}/build)
foreach(name with_kolo with_c)
  two_ranks(${directory}/build/${name})
  expect("kolo [0-9.]+ over shm: the sum of 2 ranks is 3")
endforeach()
links_only_the_runtime(${directory}/build/with_c kolo::c)
run("nm" nm -D --defined-only ${directory}/build/libaround.so)
if(output MATCHES "kolo" AND NOT flags MATCHES sanitize)
  message(FATAL_ERROR "an object that links kolo::c exports functions of kolo:\n${output}")
endif()

# With pkg-config and nothing else.
get_filename_component(pc_folder ${pc} DIRECTORY)
set(ENV{PKG_CONFIG_PATH} ${pc_folder})
run("pkg-config" pkg-config --cflags --libs kolo)
separate_arguments(kolo_flags UNIX_COMMAND "${output}")
separate_arguments(all_flags UNIX_COMMAND "${flags}")
run("cc" cc -std=c99 -Wall -Wextra -Wpedantic -Werror ${all_flags} ${program}/main.c -o ${directory}/with_pkg_config ${kolo_flags})
two_ranks(${directory}/with_pkg_config)
expect("the sum of 2 ranks is 3")

# The library has the functions of the C interface, and no other symbol.
run("nm" nm -D --defined-only ${library})
string(REGEX MATCHALL "[^\n]+" lines "${output}")
foreach(line IN LISTS lines)
  if(NOT line MATCHES " T kolo_[a-z_]+@@KOLO_0$" AND NOT line MATCHES " A KOLO_0$" AND NOT flags MATCHES sanitize)
    message(FATAL_ERROR "libkolo.so has a symbol that is not of the C interface: ${line}")
  endif()
endforeach()
foreach(header kolo.h kolo_servers.h kolo_statistics.h kolo_store.h)
  file(STRINGS ${directory}/prefix/include/kolo/${header} declared REGEX "^KOLO_C_API")
  foreach(line IN LISTS declared)
    string(REGEX MATCH "kolo_[a-z_]+\\(" name "${line}")
    string(REPLACE "(" "" name "${name}")
    if(NOT lines MATCHES " ${name}@@KOLO_0")
      message(FATAL_ERROR "${header} declares ${name}, which libkolo.so does not have")
    endif()
  endforeach()
endforeach()

# Through ctypes, also with two copies of the library. A sanitizer would have to be loaded before Python.
if(NOT flags MATCHES sanitize)
  two_ranks(python3 ${program}/sum.py ${library})
  expect("the sums are .3.0, 3.0, 3.0.")
  expect("a wrong type: 8 77 is not a kolo_type, such as KOLO_FLOAT32")
  file(MAKE_DIRECTORY ${directory}/copies)
  run("two copies" python3 ${program}/two_copies.py ${library} ${directory}/copies)
  foreach(transport shm tcp)
    expect("two copies over ${transport}: the sums are .3.0, 3.0.")
  endforeach()
endif()
