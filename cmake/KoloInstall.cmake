# kolo_install(NAME...)   installs the libraries kolo::NAME, their public headers and the package files for find_package(kolo),
#                         under <prefix>/lib/cmake/kolo and <prefix>/include/kolo
#
# libkolo.so is installed as component "runtime"; all else that a consumer needs is "development", with kolo.pc for pkg-config.
# A consumer needs none of kolo's build dependencies. The programs kolo-run, kolo-bench, kolo-conformance and kolo-train are
# installed too (bench/, transports/conformance/ and train/, component "programs"). Tests run from the build folder. Documents
# that the programs name, such as bench/README.md, are installed under <prefix>/share/doc/kolo with the same paths.
#
# kolo::device has an export of its own: it links the CUDA runtime, which other users of kolo must not need.

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
  # libkolo.so of the C interface; its headers are those of kolo::c.
  install(TARGETS kolo_shared EXPORT koloSharedTargets
          LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime NAMELINK_COMPONENT development)
  file(RELATIVE_PATH kolo_pc_prefix /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/kolo.pc.in ${PROJECT_BINARY_DIR}/package-files/kolo.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/package-files/kolo.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)
  install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT runtime)
  list(PREPEND kolo_components kolo)
  install(EXPORT koloSharedTargets NAMESPACE kolo:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/kolo COMPONENT development)
  set(destination ${CMAKE_INSTALL_LIBDIR}/cmake/kolo)
  install(EXPORT koloTargets NAMESPACE kolo:: DESTINATION ${destination} COMPONENT development)
  # find_package also searches beside each bin folder of PATH, so also in this build tree. It does not search this folder.
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
