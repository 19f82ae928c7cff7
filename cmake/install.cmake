# Headers, library, program, CMake package and pkg-config file.
install(TARGETS gccl gccl_core EXPORT gcclTargets
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS gccl_program RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY libgccl/include/gccl DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
# Those of the static core; they include gccl/gccl.h as well.
target_include_directories(gccl_core INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
foreach(folder libgccl/schedule libgccl/algorithms libgccl/runtime libgccl/select cost-models)
  cmake_path(GET folder PARENT_PATH parent)
  install(DIRECTORY ${folder} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/gccl-0/${parent} FILES_MATCHING PATTERN "*.hpp")
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

# Relative, so that an installed tree can be moved.
file(RELATIVE_PATH prefix_from_pkgconfig /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
foreach(name gccl gccl-core)
  configure_file(${CMAKE_CURRENT_LIST_DIR}/${name}.pc.in ${PROJECT_BINARY_DIR}/${name}.pc @ONLY)
endforeach()
install(FILES ${PROJECT_BINARY_DIR}/gccl.pc ${PROJECT_BINARY_DIR}/gccl-core.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
