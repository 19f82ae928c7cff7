# The way in: what a newcomer types.
add_test(NAME front_door COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/cli/front_door.sh $<TARGET_FILE:gccl_executable>
                                 ${PROJECT_SOURCE_DIR})
set_tests_properties(front_door PROPERTIES TIMEOUT 300)

# What a scenario plans is what real ranks do.
add_test(NAME planner COMMAND bash ${CMAKE_CURRENT_SOURCE_DIR}/planner.sh $<TARGET_FILE:gccl_executable> ${PROJECT_SOURCE_DIR})
set_tests_properties(planner PROPERTIES TIMEOUT 300)

# Every command of the documentation, typed. It needs the whole build, as it installs it.
if(NOT GCCL_SANITIZE AND TARGET gccl_simgrid_engine AND TARGET gccl_pmpi)
  add_test(NAME docs_commands COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/docs/run.sh ${PROJECT_BINARY_DIR} ${PROJECT_SOURCE_DIR})
  set_tests_properties(docs_commands PROPERTIES TIMEOUT 900 PROCESSORS 2 RESOURCE_LOCK install_manifest)
endif()
