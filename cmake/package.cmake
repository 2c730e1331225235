# What `cmake --install` puts where: both libraries, the headers, the command, and descriptions for pkg-config and CMake.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(TARGETS invar_shared EXPORT invarTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS invar_static EXPORT invarStaticTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
set_target_properties(invar_shared PROPERTIES EXPORT_NAME invar)
install(DIRECTORY include/invar DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
if(TARGET invar)
  install(TARGETS invar RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/invar)
install(EXPORT invarTargets NAMESPACE invar:: DESTINATION ${package_folder})
install(EXPORT invarStaticTargets NAMESPACE invar:: DESTINATION ${package_folder})
configure_package_config_file(cmake/invarConfig.cmake.in invarConfig.cmake
                              INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(invarConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/invarConfig.cmake ${CMAKE_BINARY_DIR}/invarConfigVersion.cmake
        DESTINATION ${package_folder})

# Found through its own place, so that an installed tree can be moved.
file(RELATIVE_PATH INVAR_PC_TO_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" INVAR_PC_TO_PREFIX "${INVAR_PC_TO_PREFIX}")
configure_file(cmake/invar.pc.in invar.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/invar.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
