# kolo_library(NAME [OF_PROGRAMS] SOURCES...)   a static library kolo_NAME with alias kolo::NAME and the house's flags; one that
#                                          only this project's programs link is compiled quickly (KoloQuick.cmake), five sources
#                                          at a time
# kolo_headers_alone(NAME)                  kolo::NAME without code: kolo_public_headers says which headers it gives
# kolo_public_headers(NAME HEADERS...)      the headers that users include: installed under include/kolo, each must compile alone
# kolo_uses_fmt(NAME)                      formatting inside the .cpp files, by code that is linked in (KoloFormatting.cmake), so
#                                          that the users of what is installed never hear of fmt
# kolo_component(TABLE NAME [SOURCE f] [LOADS HEADER [FROM PACKAGE] [SINCE VERSION FILE MAJOR MINOR]] [NEEDS t... [WHY WORDS]] [SOURCES f...])
#                                          one row of a table: adds SOURCE (NAME.cpp) and SOURCES to kolo_TABLEs; left out, and said so,
#                                          where the header of a library that it loads when it is first used is missing or, by
#                                          FILE's macros MAJOR and MINOR, older than VERSION, where a target that it links is
#                                          missing (WORDS add why), or where KOLO_WITHOUT names it; Debian's PACKAGE has the
#                                          header
# kolo_table(TABLE)                        writes generated/TABLE_table.inc: one KOLO_ROW(name) per component, and
#                                          generated/TABLE_left_out.inc: one KOLO_LEFT_OUT(name, why, way_out) per other one

function(kolo_flags target)
  target_compile_features(${target} PUBLIC cxx_std_20)
  # g++ 12 sees overlaps in every std::string + std::string (GCC bug 105651).
  set(quiet $<$<AND:$<CXX_COMPILER_ID:GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:-Wno-restrict>)
  # nvcc hands these on to the host's compiler, but knows a -Werror of its own, and what it hands on is not pedantic C++.
  set(is_cuda $<COMPILE_LANGUAGE:CUDA>)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wconversion -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual ${quiet}
    $<$<NOT:${is_cuda}>:-Wpedantic>
    $<$<BOOL:${KOLO_WERROR}>:$<IF:${is_cuda},-Werror=all-warnings$<SEMICOLON>-Xcompiler=-Werror,-Werror>>)
  # A project that takes kolo in and says nothing of optimizing means its own code; kolo would be three times as slow.
  if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES AND NOT CMAKE_CXX_FLAGS MATCHES "-O")
    target_compile_options(${target} PRIVATE $<$<NOT:${is_cuda}>:-O2>)
  endif()
endfunction()

# Nobody replaces single functions of ours at load time, so they may be inlined where they are defined.
set(KOLO_LIBRARY_OPTIONS -fno-semantic-interposition)

function(kolo_library name)
  cmake_parse_arguments(arg "OF_PROGRAMS" "" "" ${ARGN})
  add_library(kolo_${name} STATIC ${arg_UNPARSED_ARGUMENTS})
  add_library(kolo::${name} ALIAS kolo_${name})
  set_target_properties(kolo_${name} PROPERTIES EXPORT_NAME ${name})
  target_include_directories(kolo_${name} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
                                                 $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/kolo>)
  kolo_flags(kolo_${name})
  target_compile_options(kolo_${name} PRIVATE ${KOLO_LIBRARY_OPTIONS})
  if(arg_OF_PROGRAMS)
    kolo_precompiled(kolo_${name} FOR programs)
    set_target_properties(kolo_${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 5)
  else()
    kolo_precompiled(kolo_${name} FOR libraries)
  endif()
endfunction()

function(kolo_headers_alone name)
  add_library(kolo_${name} INTERFACE)
  add_library(kolo::${name} ALIAS kolo_${name})
  set_target_properties(kolo_${name} PROPERTIES EXPORT_NAME ${name})
  target_include_directories(kolo_${name} INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
                                                    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/kolo>)
endfunction()

function(kolo_public_headers name)
  set_target_properties(kolo_${name} PROPERTIES VERIFY_INTERFACE_HEADER_SETS ON)
  get_target_property(type kolo_${name} TYPE)
  set(scope PUBLIC)
  if(type STREQUAL INTERFACE_LIBRARY)
    set(scope INTERFACE)
  endif()
  target_sources(kolo_${name} ${scope} FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR} FILES ${ARGN})
endfunction()

function(kolo_uses_fmt name)
  target_link_libraries(kolo_${name} PRIVATE kolo::formatting)
endfunction()

function(kolo_program name)
  add_executable(${name} ${ARGN})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  kolo_flags(${name})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
endfunction()

# Says so here, and for who asks the program for it.
function(kolo_leave_out table name why way_out)
  message(STATUS "kolo: ${table} '${name}' left out: ${why}")
  set_property(GLOBAL APPEND_STRING PROPERTY KOLO_LEFT_OUT_${table}
               "KOLO_LEFT_OUT(${name}, \"${why}\", \"${way_out}, then configure and build again\")\n")
endfunction()

# "1.13", as the header `file` has it in macros; empty: it has them not.
function(kolo_header_version result file major minor)
  set(version "")
  foreach(macro IN ITEMS ${major} ${minor})
    set(line "")
    if(EXISTS ${file})
      file(STRINGS ${file} line REGEX "^#[ \t]*define[ \t]+${macro}[ \t]+[0-9]+")
    endif()
    string(REGEX MATCH "[0-9]+$" number "${line}")
    list(APPEND version ${number})
  endforeach()
  list(JOIN version "." version)
  set(${result} "${version}" PARENT_SCOPE)
endfunction()

function(kolo_component table name)
  cmake_parse_arguments(arg "" "SOURCE;LOADS;FROM;WHY" "SINCE;NEEDS;SOURCES" ${ARGN})
  if(NOT arg_SOURCE)
    set(arg_SOURCE ${name}.cpp)
  endif()
  set(install "install what has it")
  set(wants "")
  if(arg_FROM)
    set(install "install ${arg_FROM} (Debian's name)")
    set(wants " (it wants ${arg_FROM}, as Debian names it)")
  endif()
  if(name IN_LIST KOLO_WITHOUT)
    kolo_leave_out(${table} ${name} "KOLO_WITHOUT names it" "take it out of KOLO_WITHOUT${wants}")
    return()
  endif()
  foreach(need IN LISTS arg_NEEDS)
    if(NOT TARGET ${need})
      set(why "${need} was not found")
      if(arg_WHY)
        string(APPEND why ": ${arg_WHY}")
      endif()
      kolo_leave_out(${table} ${name} "${why}" "${install}")
      return()
    endif()
  endforeach()
  if(arg_LOADS)
    find_path(KOLO_${name}_HEADERS ${arg_LOADS} DOC "Folder of ${arg_LOADS}, for the ${table} ${name}")
    mark_as_advanced(KOLO_${name}_HEADERS)
    if(NOT KOLO_${name}_HEADERS)
      kolo_leave_out(${table} ${name} "${arg_LOADS} was not found" "${install}")
      return()
    endif()
    if(arg_SINCE)
      list(POP_FRONT arg_SINCE oldest file major minor)
      kolo_header_version(found ${KOLO_${name}_HEADERS}/${file} ${major} ${minor})
      if(found VERSION_LESS oldest)
        kolo_leave_out(${table} ${name} "${file} is of version ${found}, older than ${oldest}" "${install} of that version or a later one")
        return()
      endif()
    endif()
    target_include_directories(kolo_${table}s SYSTEM PRIVATE ${KOLO_${name}_HEADERS})
  endif()
  target_sources(kolo_${table}s PRIVATE ${arg_SOURCE} ${arg_SOURCES})
  target_link_libraries(kolo_${table}s PRIVATE ${arg_NEEDS})
  set_property(GLOBAL APPEND_STRING PROPERTY KOLO_TABLE_${table} "KOLO_ROW(${name})\n")
endfunction()

function(kolo_table table)
  get_property(rows GLOBAL PROPERTY KOLO_TABLE_${table})
  string(REGEX REPLACE "KOLO_ROW\\(([a-z0-9_]+)\\)\n" "\\1, " names "${rows}")
  string(REGEX REPLACE ", $" "" names "${names}")
  if(names)
    message(STATUS "kolo: ${table}s ${names}")
  endif()
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/generated/${table}_table.inc CONTENT "${rows}" @ONLY)
  get_property(left_out GLOBAL PROPERTY KOLO_LEFT_OUT_${table})
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/generated/${table}_left_out.inc CONTENT "${left_out}" @ONLY)
  target_include_directories(kolo_${table}s PRIVATE ${PROJECT_BINARY_DIR}/generated)
endfunction()
