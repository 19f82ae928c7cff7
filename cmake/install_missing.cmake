# `cmake --install` after a build of the program alone (./quickstart), or of an earlier tree: what is installed is built
# before the first file is copied, rather than stopping half-way or mixing files of two trees. Included before anything
# is installed, as install scripts run in order. With GCCL_INSTALL_AS_BUILT in the environment nothing is built.
install(CODE "include(\"${PROJECT_BINARY_DIR}/build_missing.cmake\")")

# gccl_build_before_install(target...): at the end, when they are all known.
function(gccl_build_before_install)
  add_custom_target(gccl_installed DEPENDS ${ARGN})
  file(WRITE ${PROJECT_BINARY_DIR}/build_missing.cmake
"if(NOT DEFINED ENV{GCCL_INSTALL_AS_BUILT})
  message(STATUS \"Building what is not built yet\")
  execute_process(COMMAND \"${CMAKE_COMMAND}\" --build \"${CMAKE_BINARY_DIR}\" --target gccl_installed
                  COMMAND_ERROR_IS_FATAL ANY)
endif()
")
endfunction()
