# kolo_install(NAME...)   makes the libraries kolo::NAME installable, with their public headers and the files by which
#                         find_package(kolo) finds them: <prefix>/lib/cmake/kolo, <prefix>/include/kolo
#
# The consumer needs nothing that built them. Beside these libraries kolo-run, kolo-bench, kolo-conformance and kolo-train
# are installed (bench/, transports/conformance/ and train/, component "programs"); the tests run from the build folder.
# What they call bench/README.md, transports/GUIDE.md and so on lies below <prefix>/share/doc/kolo by the same names.
#
# kolo::device is in an export of its own: it links CUDA's runtime, which nobody must have who does not link it.

include(CMakePackageConfigHelpers)

function(kolo_install)
  if(NOT KOLO_INSTALL)
    return()
  endif()
  set(targets "")
  set(kolo_components ${ARGN})
  set(kolo_cuda_version "")
  foreach(name IN LISTS ARGN)
    if(TARGET kolo_${name})
      list(APPEND targets kolo_${name})
      get_target_property(sets kolo_${name} INTERFACE_HEADER_SETS)
      set(headers "")
      if(sets)
        set(headers FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/kolo COMPONENT development)
      endif()
      set(export koloTargets)
      if(name STREQUAL device)
        set(export koloDeviceTargets)
        set(kolo_cuda_version ${CMAKE_CUDA_COMPILER_VERSION})
        install(EXPORT ${export} NAMESPACE kolo:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/kolo COMPONENT development)
      endif()
      install(TARGETS kolo_${name} EXPORT ${export}
              ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development ${headers})
    endif()
  endforeach()
  if(NOT targets)
    return()
  endif()
  set(destination ${CMAKE_INSTALL_LIBDIR}/cmake/kolo)
  install(EXPORT koloTargets NAMESPACE kolo:: DESTINATION ${destination} COMPONENT development)
  # find_package looks beside every bin in the PATH, this build's among them, but in no folder of this name.
  set(files ${PROJECT_BINARY_DIR}/package-files)
  file(REMOVE ${PROJECT_BINARY_DIR}/koloConfig.cmake ${PROJECT_BINARY_DIR}/koloConfigVersion.cmake)  # of an older configuration
  configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/koloConfig.cmake.in ${files}/koloConfig.cmake
                                INSTALL_DESTINATION ${destination})
  write_basic_package_version_file(${files}/koloConfigVersion.cmake COMPATIBILITY SameMinorVersion)
  foreach(component development programs)
    install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT ${component})
    foreach(document IN LISTS KOLO_DOCUMENTS)
      get_filename_component(folder ${document} DIRECTORY)
      install(FILES ${PROJECT_SOURCE_DIR}/${document} DESTINATION ${CMAKE_INSTALL_DOCDIR}/${folder} COMPONENT ${component})
    endforeach()
  endforeach()
  install(FILES ${files}/koloConfig.cmake ${files}/koloConfigVersion.cmake DESTINATION ${destination} COMPONENT development)
endfunction()
