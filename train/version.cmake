# cmake -DSOURCE=DIR -DOUT=FILE -DVERSION=V -DCOMPILER=C -P version.cmake
#
# Writes version, commit and compiler into a C++ file. Changes the file only if they have changed, to avoid recompiling.
cmake_policy(VERSION 3.25)
set(commit "unknown")
find_package(Git QUIET)
if(GIT_FOUND)
  execute_process(COMMAND ${GIT_EXECUTABLE} -c safe.directory=* describe --always --dirty --abbrev=12
                  WORKING_DIRECTORY ${SOURCE} OUTPUT_VARIABLE said RESULT_VARIABLE status ERROR_QUIET
                  OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(status EQUAL 0)
    set(commit ${said})
  endif()
endif()
file(CONFIGURE OUTPUT ${OUT} CONTENT "constexpr const char* kVersion = \"@VERSION@\";
constexpr const char* kCommit = \"@commit@\";
constexpr const char* kCompiler = \"@COMPILER@\";
" @ONLY)
