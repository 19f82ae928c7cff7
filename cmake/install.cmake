# Headers, library, program, CMake package and pkg-config file.
install(TARGETS gccl gccl_core EXPORT gcclTargets
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS gccl_program RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY libgccl/include/gccl DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
foreach(folder libgccl cost-models)
  install(DIRECTORY ${folder} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/gccl-0 FILES_MATCHING PATTERN "*.hpp" PATTERN "*.h")
endforeach()
foreach(folder topologies scenarios cost-models)
  install(DIRECTORY ${folder} DESTINATION ${CMAKE_INSTALL_DATADIR}/gccl FILES_MATCHING PATTERN "*.json")
endforeach()

set(cmake_dir ${CMAKE_INSTALL_LIBDIR}/cmake/gccl)
install(EXPORT gcclTargets NAMESPACE gccl:: DESTINATION ${cmake_dir})
file(WRITE ${PROJECT_BINARY_DIR}/gcclConfig.cmake "include(\"\${CMAKE_CURRENT_LIST_DIR}/gcclTargets.cmake\")\n")
write_basic_package_version_file(${PROJECT_BINARY_DIR}/gcclConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/gcclConfig.cmake ${PROJECT_BINARY_DIR}/gcclConfigVersion.cmake
        DESTINATION ${cmake_dir})

foreach(name gccl gccl-core)
  configure_file(${CMAKE_CURRENT_LIST_DIR}/${name}.pc.in ${PROJECT_BINARY_DIR}/${name}.pc @ONLY)
endforeach()
install(FILES ${PROJECT_BINARY_DIR}/gccl.pc ${PROJECT_BINARY_DIR}/gccl-core.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
