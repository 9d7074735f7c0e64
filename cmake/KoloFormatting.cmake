# kolo::formatting: fmt, compiled once into a library of this project.
#
# Users of the installed libraries do not need fmt. kolo's copy has a namespace of its own (fmt's macros allow that), so a
# program may link any other version of fmt. Header-only use (FMT_HEADER_ONLY) would take five seconds per source, two thirds
# of a build. It is the fallback if formatting.cpp does not fit the installed version of fmt.

# Only the headers are needed. Where they are those of the system, as in a cross build, no package file may be found.
find_package(fmt QUIET)
if(fmt_FOUND)
  get_target_property(include fmt::fmt-header-only INTERFACE_INCLUDE_DIRECTORIES)
else()
  find_path(KOLO_FMT_HEADERS fmt/format-inl.h DOC "Folder of fmt's headers, if there is no package file of fmt")
  mark_as_advanced(KOLO_FMT_HEADERS)
  if(NOT KOLO_FMT_HEADERS)
    message(FATAL_ERROR "kolo: fmt was not found: install libfmt-dev (Debian's name), or name the folder of its package or headers "
                        "with -D CMAKE_PREFIX_PATH=DIR")
  endif()
  set(include ${KOLO_FMT_HEADERS})
endif()
set(inside "FMT_BEGIN_NAMESPACE=namespace fmt { inline namespace inside_kolo {" "FMT_END_NAMESPACE=} }")

if(NOT DEFINED KOLO_FMT_ONCE)
  string(STRIP "fmt ${fmt_VERSION}" which)
  message(STATUS "kolo: ${which}: compiled once?")
  set(folder ${PROJECT_BINARY_DIR}/CMakeFiles/formatting)
  file(CONFIGURE OUTPUT ${folder}/inside.h CONTENT
       "#define FMT_BEGIN_NAMESPACE namespace fmt { inline namespace inside_kolo {\n#define FMT_END_NAMESPACE } }\n")
  foreach(source formatting formatting_probe)
    file(CONFIGURE OUTPUT ${folder}/${source}.cpp CONTENT
         "#include \"inside.h\"\n#include \"${CMAKE_CURRENT_LIST_DIR}/${source}.cpp\"\n")
  endforeach()
  try_compile(KOLO_FMT_ONCE ${folder}/build SOURCES ${folder}/formatting.cpp ${folder}/formatting_probe.cpp
              CMAKE_FLAGS "-DINCLUDE_DIRECTORIES=${include}" CXX_STANDARD 20 CXX_STANDARD_REQUIRED ON OUTPUT_VARIABLE said)
  if(KOLO_FMT_ONCE)
    message(STATUS "kolo: ${which}: compiled once - yes")
  else()
    file(WRITE ${folder}/said.txt "${said}")
    message(STATUS "kolo: ${which}: compiled once - no; header-only, which compiles more slowly (${folder}/said.txt)")
  endif()
endif()

if(KOLO_FMT_ONCE)
  add_library(kolo_formatting STATIC ${CMAKE_CURRENT_LIST_DIR}/formatting.cpp)
  add_library(kolo::formatting ALIAS kolo_formatting)
  set_target_properties(kolo_formatting PROPERTIES EXPORT_NAME formatting)
  kolo_flags(kolo_formatting)
  set_target_properties(kolo_formatting PROPERTIES CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  target_compile_options(kolo_formatting PRIVATE $<$<CONFIG:Release>:-Os>)
  set(scope PUBLIC)
else()
  kolo_headers_alone(formatting)
  set(scope INTERFACE)
  list(APPEND inside FMT_HEADER_ONLY=1)
endif()
target_compile_definitions(kolo_formatting ${scope} "$<BUILD_INTERFACE:${inside}>")
target_include_directories(kolo_formatting SYSTEM ${scope} "$<BUILD_INTERFACE:${include}>")
