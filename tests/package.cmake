# The installed package, used from outside. Sanitized libraries would ask the consumer for their runtime.
if(NOT GCCL_SANITIZE)
  add_test(NAME installed_package COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/package/run.sh ${PROJECT_BINARY_DIR}
                                          ${PROJECT_SOURCE_DIR} ${CMAKE_CXX_COMPILER})
  set_tests_properties(installed_package PROPERTIES TIMEOUT 300)
endif()
