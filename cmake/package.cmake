# What `cmake --install` puts where: both libraries, the headers, the command, and descriptions for pkg-config and CMake.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# The Python package (pyproject.toml): the library beside its sources and the command in a folder of theirs. A wheel has no
# symbolic links, so the library has one name there, and the command finds it by where it lies itself.
if(SKBUILD)
  set_property(TARGET samebit_shared PROPERTY VERSION)
  set_property(TARGET samebit_shared PROPERTY SOVERSION)
  set_target_properties(samebit PROPERTIES INSTALL_RPATH "$ORIGIN/..")
  install(TARGETS samebit_shared LIBRARY DESTINATION samebit COMPONENT python)
  install(TARGETS samebit RUNTIME DESTINATION samebit/bin COMPONENT python)
endif()

install(TARGETS samebit_shared EXPORT samebitTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS samebit_static EXPORT samebitStaticTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
set_target_properties(samebit_shared PROPERTIES EXPORT_NAME samebit)
install(DIRECTORY include/samebit DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
if(TARGET samebit)
  install(TARGETS samebit RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/samebit)
install(EXPORT samebitTargets NAMESPACE samebit:: DESTINATION ${package_folder})
install(EXPORT samebitStaticTargets NAMESPACE samebit:: DESTINATION ${package_folder})
configure_package_config_file(cmake/samebitConfig.cmake.in samebitConfig.cmake
                              INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(samebitConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/samebitConfig.cmake ${CMAKE_BINARY_DIR}/samebitConfigVersion.cmake
        DESTINATION ${package_folder})

# Found through its own place, so that an installed tree can be moved.
file(RELATIVE_PATH SAMEBIT_PC_TO_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" SAMEBIT_PC_TO_PREFIX "${SAMEBIT_PC_TO_PREFIX}")
configure_file(cmake/samebit.pc.in samebit.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/samebit.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
