# The way in: what a newcomer types.
add_test(NAME front_door COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/cli/front_door.sh $<TARGET_FILE:gccl_executable>
                                 ${PROJECT_SOURCE_DIR})
set_tests_properties(front_door PROPERTIES TIMEOUT 300)
