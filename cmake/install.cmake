# SPDX-License-Identifier: MIT
# The installed library: headers, CMake package, pkg-config file, the debugger's script.
include(CMakePackageConfigHelpers)

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/cede)

install(TARGETS cede EXPORT cede-targets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/cede ${PROJECT_BINARY_DIR}/include/cede
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(FILES ${PROJECT_SOURCE_DIR}/share/gdb/cede.py DESTINATION ${CMAKE_INSTALL_DATADIR}/gdb)

install(EXPORT cede-targets NAMESPACE cede:: DESTINATION ${package_folder})
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/cede-config.cmake.in
  ${PROJECT_BINARY_DIR}/cede-config.cmake INSTALL_DESTINATION ${package_folder})
# Before 1.0 every minor version may change the interface.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/cede-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/cede-config.cmake
  ${PROJECT_BINARY_DIR}/cede-config-version.cmake DESTINATION ${package_folder})

# The .pc file finds its prefix from where it lies, so that an installed tree can be moved.
file(RELATIVE_PATH CEDE_PREFIX_FROM_PC
  ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
configure_file(${CMAKE_CURRENT_LIST_DIR}/cede.pc.in ${PROJECT_BINARY_DIR}/cede.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/cede.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
