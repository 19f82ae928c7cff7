# gccl_plugin_abi(target...): lets the targets include "cli/plugin_abi.hpp" (generated), whose GCCL_PLUGIN_ABI differs
# where the program and a plug-in may have laid out differently what they share: another compiler or other options,
# or another text of a header. When run as a script (-P), writes that file.
if(CMAKE_SCRIPT_MODE_FILE)
  set(all "${OPTIONS}")
  foreach(header IN LISTS HEADERS)
    file(SHA256 ${header} hash)
    string(APPEND all " ${hash}")
  endforeach()
  string(SHA256 hash "${all}")
  string(SUBSTRING ${hash} 0 16 hash)
  file(WRITE ${OUTPUT} "#define GCCL_PLUGIN_ABI \"${hash}\"\n")
  return()
endif()

set(GCCL_PLUGIN_ABI_HEADER ${PROJECT_BINARY_DIR}/embedded/cli/plugin_abi.hpp)
file(GLOB headers CONFIGURE_DEPENDS libgccl/*/*.hpp libgccl/*/*/*.hpp sim/engine/*.hpp cli/command.hpp cli/commands.hpp cli/interrupt.hpp cli/run.hpp cli/bench/*.hpp)
add_custom_command(
  OUTPUT ${GCCL_PLUGIN_ABI_HEADER} DEPENDS ${headers} ${CMAKE_CURRENT_LIST_FILE} VERBATIM
  COMMAND ${CMAKE_COMMAND} -DOUTPUT=${GCCL_PLUGIN_ABI_HEADER} "-DHEADERS=${headers}"
          "-DOPTIONS=${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION} ${CMAKE_BUILD_TYPE} ${GCCL_SANITIZE}"
          -P ${CMAKE_CURRENT_LIST_FILE}
  COMMENT "Hashing what the program and its plug-ins share")
add_custom_target(gccl_plugin_abi_header DEPENDS ${GCCL_PLUGIN_ABI_HEADER})

function(gccl_plugin_abi)
  foreach(target IN LISTS ARGN)
    add_dependencies(${target} gccl_plugin_abi_header)
    target_include_directories(${target} PRIVATE ${PROJECT_BINARY_DIR}/embedded)
  endforeach()
endfunction()
