# `cmake --install` after a build of the program alone (./quickstart): what else is installed is built before the first
# file is copied, rather than stopping half-way. Included before anything is installed, as install scripts run in order.
install(CODE "include(\"${PROJECT_BINARY_DIR}/build_missing.cmake\")")

# gccl_build_before_install(target...): at the end, when they are all known.
function(gccl_build_before_install)
  add_custom_target(gccl_installed DEPENDS ${ARGN})
  set(files "")
  foreach(target IN LISTS ARGN)
    get_target_property(type ${target} TYPE)
    if(NOT type STREQUAL "UTILITY")
      string(APPEND files "  \"$<TARGET_FILE:${target}>\"\n")
    endif()
  endforeach()
  file(GENERATE OUTPUT ${PROJECT_BINARY_DIR}/build_missing.cmake CONTENT
"foreach(file
${files}  \"${GCCL_STATIC_LIBRARY}\")
  if(NOT EXISTS \"\${file}\")
    message(STATUS \"Building what is not built yet\")
    execute_process(COMMAND \"${CMAKE_COMMAND}\" --build \"${PROJECT_BINARY_DIR}\" --target gccl_installed
                    COMMAND_ERROR_IS_FATAL ANY)
    break()
  endif()
endforeach()
")
endfunction()
