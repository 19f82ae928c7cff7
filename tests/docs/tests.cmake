# Every command of the documentation, typed. It needs the whole build, as it installs it.
if(NOT GCCL_SANITIZE AND TARGET gccl_simgrid_engine AND TARGET gccl_pmpi)
  add_test(NAME docs_commands COMMAND ${CMAKE_CURRENT_LIST_DIR}/run.sh ${PROJECT_BINARY_DIR} ${PROJECT_SOURCE_DIR})
  set_tests_properties(docs_commands PROPERTIES TIMEOUT 900 PROCESSORS 6 RESOURCE_LOCK install_manifest)
endif()
