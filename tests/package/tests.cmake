# The installed package, used from outside. Sanitized libraries would ask the consumer for their runtime.
if(NOT GCCL_SANITIZE)
  find_program(GCCL_C_COMPILER NAMES cc gcc clang)
  add_test(NAME installed_package COMMAND ${CMAKE_CURRENT_LIST_DIR}/run.sh ${PROJECT_BINARY_DIR}
                                          ${PROJECT_SOURCE_DIR} ${GCCL_C_COMPILER} ${CMAKE_CXX_COMPILER})
  set_tests_properties(installed_package PROPERTIES TIMEOUT 300 RESOURCE_LOCK install_manifest)
endif()
