# Writes the commit of SOURCE to FILE as a C++ string literal; KOLO_COMMIT of the
# environment, or "unknown", without git. "-dirty" is added if files differ from it.
execute_process(COMMAND git -c safe.directory=* -C ${SOURCE} describe --always --dirty --abbrev=12 --exclude=*
                OUTPUT_VARIABLE commit RESULT_VARIABLE code OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(NOT code EQUAL 0 OR NOT EXISTS ${SOURCE}/.git)
  set(commit "$ENV{KOLO_COMMIT}")
  if(commit STREQUAL "")
    set(commit unknown)
  endif()
endif()
file(CONFIGURE OUTPUT ${FILE} CONTENT "\"${commit}\"\n")
