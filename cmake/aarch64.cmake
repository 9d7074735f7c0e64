# Toolchain file for aarch64: cmake -D CMAKE_TOOLCHAIN_FILE=cmake/aarch64.cmake, or the preset aarch64.
#
# Needs Debian's g++-aarch64-linux-gnu. Programs run with qemu-aarch64 (package qemu-user), if it is installed.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)

# Libraries and packages of this machine are for its own processor. Headers are not, so those of fmt may be used.
set(CMAKE_FIND_ROOT_PATH /usr/aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)

find_program(KOLO_QEMU_AARCH64 qemu-aarch64 DOC "Runs programs for aarch64")
mark_as_advanced(KOLO_QEMU_AARCH64)
if(KOLO_QEMU_AARCH64)
  set(CMAKE_CROSSCOMPILING_EMULATOR ${KOLO_QEMU_AARCH64} -L /usr/aarch64-linux-gnu)
endif()
