# libgccl.a: one object with all of GCCL that only defines GCCL_* for others, so that nothing of it can clash with what
# else is linked (groups of inline functions are dissolved first: a local symbol must not be dropped for another's).
find_program(GCCL_GNU_LD NAMES ld.bfd ld)  # lld, which a clang brings along, cannot dissolve them
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  foreach(part gccl_runtime gccl_start gccl_net gccl_cluster gccl_cluster_documents gccl_combine gccl_core)
    target_compile_options(${part} PRIVATE -fno-gnu-unique)  # objcopy leaves unique symbols global
  endforeach()
endif()
set(GCCL_STATIC_LIBRARY ${PROJECT_BINARY_DIR}/libgccl.a)
add_custom_command(
  OUTPUT ${GCCL_STATIC_LIBRARY} VERBATIM
  DEPENDS gccl_runtime gccl_net gccl_cluster gccl_combine gccl_core
  COMMAND ${GCCL_GNU_LD} -r --force-group-allocation -o libgccl_all.o --whole-archive $<TARGET_FILE:gccl_runtime>
          --no-whole-archive $<TARGET_FILE:gccl_net> $<TARGET_FILE:gccl_cluster>
          $<TARGET_FILE:gccl_combine> $<TARGET_FILE:gccl_core>
  COMMAND ${CMAKE_OBJCOPY} --wildcard --keep-global-symbol=GCCL_* libgccl_all.o
  COMMAND ${CMAKE_COMMAND} -E rm -f ${GCCL_STATIC_LIBRARY}
  COMMAND ${CMAKE_AR} rcs ${GCCL_STATIC_LIBRARY} libgccl_all.o
  COMMAND ${CMAKE_COMMAND} -E rm -f libgccl_all.o
  WORKING_DIRECTORY ${PROJECT_BINARY_DIR}
  COMMENT "Linking static library libgccl.a")
add_custom_target(gccl_static ALL DEPENDS ${GCCL_STATIC_LIBRARY})
# What a program links besides it.
set(GCCL_STATIC_NEEDS pugixml hwloc crypto fmt stdc++ m pthread dl)
