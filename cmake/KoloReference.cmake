# Target `reference`: the public headers as a reference in HTML, under BUILD/reference/html. Needs Doxygen.

find_program(KOLO_DOXYGEN doxygen DOC "Doxygen, for the target reference")
mark_as_advanced(KOLO_DOXYGEN)
if(NOT KOLO_DOXYGEN OR NOT PROJECT_IS_TOP_LEVEL)
  return()
endif()
set(kolo_reference_files "")
foreach(name plugin transports collectives c conformance)
  get_target_property(files kolo_${name} HEADER_SET)
  get_target_property(folder kolo_${name} SOURCE_DIR)
  foreach(file IN LISTS files)
    get_filename_component(file ${file} ABSOLUTE BASE_DIR ${folder})
    string(APPEND kolo_reference_files "\"${file}\" ")
  endforeach()
endforeach()
configure_file(${PROJECT_SOURCE_DIR}/cmake/Doxyfile.in ${PROJECT_BINARY_DIR}/Doxyfile @ONLY)
add_custom_target(reference COMMAND ${CMAKE_COMMAND} -E make_directory ${PROJECT_BINARY_DIR}/reference
                  COMMAND ${KOLO_DOXYGEN} ${PROJECT_BINARY_DIR}/Doxyfile COMMENT "Reference of the public headers" VERBATIM)
