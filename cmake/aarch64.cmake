# SPDX-License-Identifier: MIT
# Cross toolchain: AArch64 Linux, tests under qemu's user emulation.
#   cmake -B build -DCMAKE_TOOLCHAIN_FILE=cmake/aarch64.cmake
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)

option(CEDE_CROSS_CLANG "Cross-compile with clang and lld instead of gcc" OFF)
set(CEDE_EMULATOR_OPTIONS "" CACHE STRING "Options of qemu-aarch64, such as -cpu;cortex-a72")
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES CEDE_CROSS_CLANG CEDE_EMULATOR_OPTIONS)

set(system aarch64-linux-gnu)
if(CEDE_CROSS_CLANG)
  set(CMAKE_C_COMPILER clang)
  set(CMAKE_CXX_COMPILER clang++)
  set(CMAKE_ASM_COMPILER clang)
  foreach(language C CXX ASM)
    set(CMAKE_${language}_COMPILER_TARGET ${system})
  endforeach()
  set(CMAKE_EXE_LINKER_FLAGS_INIT -fuse-ld=lld)
else()
  set(CMAKE_C_COMPILER ${system}-gcc)
  set(CMAKE_CXX_COMPILER ${system}-g++)
endif()

set(CMAKE_FIND_ROOT_PATH /usr/${system})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L /usr/${system} ${CEDE_EMULATOR_OPTIONS})
