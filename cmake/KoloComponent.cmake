# Functions that declare libraries, programs and tables of optional components.
#
# kolo_library(NAME [OF_PROGRAMS] SOURCES...)
#     A static library kolo_NAME with alias kolo::NAME and the project's flags. OF_PROGRAMS: only this project's programs
#     link it, so it has precompiled headers (KoloQuick.cmake) and unity builds of five sources.
# kolo_headers_alone(NAME)
#     An interface library kolo::NAME; kolo_public_headers lists its headers.
# kolo_public_headers(NAME HEADERS...)
#     The headers that users include. They are installed under include/kolo, with the paths of the tree or, if KOLO_HEADERS_BASE
#     is set, the paths below that folder. Each must compile alone.
# kolo_for_size(NAME SOURCES...)
#     Sources of kolo_NAME that run at the start, at the end and in failures: half as large and a third faster to compile with
#     -Os in Release builds. They are an object library of their own, which has precompiled headers of its own. Call it after
#     all sources are added. Sources that kolo_NAME does not have, as those of components that were left out, are ignored.
# kolo_uses_fmt(NAME)
#     The library's .cpp files use fmt, which is linked in (KoloFormatting.cmake). Users of the installed libraries do not
#     need fmt.
# kolo_component(TABLE NAME [SOURCE f] [LOADS HEADER [FROM PACKAGE] [SINCE VERSION FILE MAJOR MINOR]] [NEEDS t... [WHY WORDS]]
#                [SOURCES f...])
#     One row of a table: adds SOURCE (default: NAME.cpp) and SOURCES to kolo_TABLEs. The component is left out, with a
#     message, in these cases:
#     - LOADS: the library is loaded at first use, and its HEADER is missing. PACKAGE is Debian's package of the header.
#     - SINCE: the macros MAJOR and MINOR of FILE give a version older than VERSION.
#     - NEEDS: a target that it links is missing; WORDS add the reason.
#     - KOLO_WITHOUT names it.
# kolo_table(TABLE)
#     Writes generated/TABLE_table.inc with one KOLO_ROW(name) per component, and generated/TABLE_left_out.inc with one
#     KOLO_LEFT_OUT(name, why, way_out) per component that was left out.

function(kolo_flags target)
  target_compile_features(${target} PUBLIC cxx_std_20)
  # g++ 12 warns falsely of overlaps in std::string + std::string (GCC bug 105651).
  set(quiet $<$<AND:$<NOT:$<COMPILE_LANGUAGE:C>>,$<CXX_COMPILER_ID:GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:-Wno-restrict>)
  # Clang 19 forgets the pragmas of precompiled headers, with which libstdc++ silences warnings of its std::stable_sort.
  list(APPEND quiet $<$<CXX_COMPILER_ID:Clang>:-Wno-deprecated-declarations>)
  # nvcc passes these flags to the host compiler. It has its own form of -Werror, and the code it generates is not pedantic C++.
  set(is_cuda $<COMPILE_LANGUAGE:CUDA>)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wconversion -Wshadow
    $<$<NOT:$<COMPILE_LANGUAGE:C>>:-Wnon-virtual-dtor$<SEMICOLON>-Woverloaded-virtual> ${quiet}
    $<$<NOT:${is_cuda}>:-Wpedantic>
    $<$<BOOL:${KOLO_WERROR}>:$<IF:${is_cuda},-Werror=all-warnings$<SEMICOLON>-Xcompiler=-Werror,-Werror>>)
  # A parent project may set no build type and no -O. Unoptimized, kolo would be three times as slow, so use -O2.
  if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES AND NOT CMAKE_CXX_FLAGS MATCHES "-O")
    target_compile_options(${target} PRIVATE $<$<NOT:${is_cuda}>:-O2>)
  endif()
endfunction()

# kolo's functions are not interposed at load time (LD_PRELOAD), so the compiler may inline them within their source file.
# A section per function lets --gc-sections leave out what libkolo.so does not use.
set(KOLO_LIBRARY_OPTIONS -fno-semantic-interposition -ffunction-sections -fdata-sections)

function(kolo_library name)
  cmake_parse_arguments(arg "OF_PROGRAMS" "" "" ${ARGN})
  add_library(kolo_${name} STATIC ${arg_UNPARSED_ARGUMENTS})
  add_library(kolo::${name} ALIAS kolo_${name})
  # Hidden symbols: an object that links kolo does not export it, so two such objects in one process do not share functions.
  set_target_properties(kolo_${name} PROPERTIES EXPORT_NAME ${name} CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
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
  set(base ${PROJECT_SOURCE_DIR})
  if(KOLO_HEADERS_BASE)
    set(base ${KOLO_HEADERS_BASE})
  endif()
  target_sources(kolo_${name} ${scope} FILE_SET HEADERS BASE_DIRS ${base} FILES ${ARGN})
endfunction()

function(kolo_uses_fmt name)
  target_link_libraries(kolo_${name} PRIVATE kolo::formatting)
endfunction()

function(kolo_for_size name)
  set(library kolo_${name}_for_size)
  get_target_property(sources kolo_${name} SOURCES)
  set(moved "")
  foreach(source IN LISTS ARGN)
    foreach(written ${source} ${CMAKE_CURRENT_SOURCE_DIR}/${source})
      if(written IN_LIST sources)
        list(REMOVE_ITEM sources ${written})
        list(APPEND moved ${source})
      endif()
    endforeach()
  endforeach()
  add_library(${library} OBJECT EXCLUDE_FROM_ALL ${moved})
  set_target_properties(${library} PROPERTIES CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  get_target_property(libraries kolo_${name} LINK_LIBRARIES)
  target_link_libraries(${library} PRIVATE ${libraries})
  get_target_property(folders kolo_${name} INCLUDE_DIRECTORIES)
  list(FILTER folders EXCLUDE REGEX "^[$]<|/generated$|-NOTFOUND$")  # those of other projects remain
  target_include_directories(${library} PRIVATE ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}/generated)
  target_include_directories(${library} SYSTEM PRIVATE ${folders})
  get_target_property(definitions kolo_${name} COMPILE_DEFINITIONS)
  if(definitions)
    target_compile_definitions(${library} PRIVATE ${definitions})
  endif()
  kolo_flags(${library})
  target_compile_options(${library} PRIVATE ${KOLO_LIBRARY_OPTIONS} $<$<CONFIG:Release>:-Os>)
  kolo_precompiled(${library} FOR libraries_for_size)
  set_target_properties(kolo_${name} PROPERTIES SOURCES "${sources};$<TARGET_OBJECTS:${library}>")
endfunction()

function(kolo_program name)
  add_executable(${name} ${ARGN})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  kolo_flags(${name})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
endfunction()

# Reports a component that is left out: at configure time, and in the program when a user requests it.
function(kolo_leave_out table name why way_out)
  message(STATUS "kolo: ${table} '${name}' left out: ${why}")
  set_property(GLOBAL APPEND_STRING PROPERTY KOLO_LEFT_OUT_${table}
               "KOLO_LEFT_OUT(${name}, \"${why}\", \"${way_out}, then configure and build again\")\n")
endfunction()

# The version, such as "1.13", from two macros of the header `file`; empty if it does not define them.
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
  set(install "install the package that has it")
  set(wants "")
  if(arg_FROM)
    set(install "install ${arg_FROM} (Debian's name)")
    set(wants " (it needs ${arg_FROM}, as Debian names it)")
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
