# Headers, libraries, program, plug-ins, shipped files, CMake package and pkg-config files. Everything in the installed
# tree finds the rest relative to itself, so that it can be moved.
install(TARGETS gccl gccl_core EXPORT gcclTargets
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(FILES ${GCCL_STATIC_LIBRARY} DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS gccl_executable RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS ${gccl_plugins} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/gccl)
install(DIRECTORY libgccl/include/gccl DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
# Those of the static core; they include gccl/gccl.h as well.
target_include_directories(gccl_core INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
foreach(room base schedule cost algorithms select verify elements)
  # Not as a folder: one without a header would be made too, and be in no manifest of what to uninstall.
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR} libgccl/${room}/*.hpp)
  list(FILTER headers EXCLUDE REGEX "/(combine[^/]*|elements)\\.hpp$")  # not of gccl_core
  foreach(header IN LISTS headers)
    cmake_path(GET header PARENT_PATH folder)
    install(FILES ${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/gccl-0/${folder})
  endforeach()
endforeach()
foreach(folder topologies scenarios workloads cost-models)
  install(DIRECTORY ${folder} DESTINATION ${CMAKE_INSTALL_DATADIR}/gccl FILES_MATCHING PATTERN "*.json"
          PATTERN "*.et")
endforeach()
file(GLOB schemas CONFIGURE_DEPENDS libgccl/*/*.schema.json sim/*/*.schema.json)
install(FILES ${schemas} DESTINATION ${CMAKE_INSTALL_DATADIR}/gccl/schemas)
install(FILES README.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs examples DESTINATION ${CMAKE_INSTALL_DOCDIR})

set(cmake_dir ${CMAKE_INSTALL_LIBDIR}/cmake/gccl)
install(EXPORT gcclTargets NAMESPACE gccl:: DESTINATION ${cmake_dir})
configure_package_config_file(cmake/gcclConfig.cmake.in ${PROJECT_BINARY_DIR}/gcclConfig.cmake
                              INSTALL_DESTINATION ${cmake_dir} NO_CHECK_REQUIRED_COMPONENTS_MACRO
                              PATH_VARS CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_INCLUDEDIR)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/gcclConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/gcclConfig.cmake ${PROJECT_BINARY_DIR}/gcclConfigVersion.cmake
        DESTINATION ${cmake_dir})

# For the installed tree alone: their prefix is relative to where they are installed.
file(RELATIVE_PATH prefix_from_pkgconfig /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" prefix_from_pkgconfig "${prefix_from_pkgconfig}")
list(TRANSFORM GCCL_STATIC_NEEDS PREPEND "-l" OUTPUT_VARIABLE static_libraries)
list(JOIN static_libraries " " static_libraries)
foreach(name gccl gccl-core gccl-static)
  configure_file(${CMAKE_CURRENT_LIST_DIR}/${name}.pc.in ${PROJECT_BINARY_DIR}/to_install/${name}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/to_install/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endforeach()

set(installed gccl gccl_core gccl_static gccl_executable gccl_pages gccl_nccl_tuner ${gccl_plugins})
if(TARGET gccl_pmpi)
  list(APPEND installed gccl_pmpi)
endif()
gccl_build_before_install(${installed})

# cmake --build build/release --target uninstall: what the last installation from this build folder copied.
if(PROJECT_IS_TOP_LEVEL)  # a project around this one has its own
  add_custom_target(uninstall COMMAND ${CMAKE_COMMAND} -DMANIFEST=${PROJECT_BINARY_DIR}/install_manifest.txt
                                      -P ${PROJECT_SOURCE_DIR}/cmake/uninstall.cmake VERBATIM)
endif()
