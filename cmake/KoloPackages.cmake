# Debian packages, made by `cpack` in a build folder:
#
#   libkolo0      libkolo.so, for programs that use the C interface
#   libkolo-dev   headers, archives, and files for CMake and pkg-config
#   kolo-tools    kolo-run, kolo-bench, kolo-train, kolo-conformance
#
# dpkg-shlibdeps finds the packages that they depend on. Configure with -D CMAKE_INSTALL_PREFIX=/usr for paths of the system.

if(NOT KOLO_INSTALL OR NOT PROJECT_IS_TOP_LEVEL)
  return()
endif()
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME kolo)
set(CPACK_PACKAGE_VENDOR "kolo")
set(CPACK_PACKAGE_CONTACT "the maintainers of kolo <kolo@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL runtime development programs)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME libkolo0)
set(CPACK_DEBIAN_RUNTIME_DESCRIPTION "Collective operations over swappable transports (shared library)")
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libkolo-dev)
set(CPACK_DEBIAN_DEVELOPMENT_DESCRIPTION "Collective operations over swappable transports (headers and archives)")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "libkolo0 (= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_PROGRAMS_PACKAGE_NAME kolo-tools)
set(CPACK_DEBIAN_PROGRAMS_DESCRIPTION "Collective operations over swappable transports (launcher, benchmark, training)")
set(CPACK_DEBIAN_PROGRAMS_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PROGRAMS_PACKAGE_SHLIBDEPS ON)
include(CPack)
