target_link_libraries(test_cli PRIVATE gccl_runtime OpenSSL::Crypto)

# It holds predictions to what ranks take, so nothing else may run.
set_tests_properties(calibrate PROPERTIES RUN_SERIAL TRUE)

# The way in: what a newcomer types.
add_test(NAME front_door COMMAND ${CMAKE_CURRENT_LIST_DIR}/front_door.sh $<TARGET_FILE:gccl_executable>
                                 ${PROJECT_SOURCE_DIR})
set_tests_properties(front_door PROPERTIES TIMEOUT 300)

# `gccl bench` plays every algorithm in chunks over the runtime and checks each element. At these sizes an all-gather's
# chunks have two lengths, of which pat sends the longer ones one by one and the shorter ones together.
foreach(slicing "2 1" "5 2")
  separate_arguments(numbers UNIX_COMMAND "${slicing}")
  list(GET numbers 0 chunks)
  list(GET numbers 1 channels)
  math(EXPR bytes "(32768 * ${chunks} + 1) * 16")
  add_test(NAME bench_${chunks}_chunks
           COMMAND gccl_executable launch -n 4 -- $<TARGET_FILE:gccl_executable> bench --collective all --algorithm all
                   --chunks ${chunks} --channels ${channels} --min-bytes ${bytes} --max-bytes ${bytes} --iterations 1)
  set_tests_properties(bench_${chunks}_chunks PROPERTIES PROCESSORS 6 TIMEOUT 300
                       PASS_REGULAR_EXPRESSION "wrong elements: 0")
endforeach()

# The timelines of scenarios on real ranks, held to the simulation of the same.
add_test(NAME real_ranks COMMAND bash ${CMAKE_CURRENT_LIST_DIR}/real_ranks.sh $<TARGET_FILE:gccl_executable>)
set_tests_properties(real_ranks PROPERTIES TIMEOUT 300)
add_test(NAME real_slow_link COMMAND bash ${CMAKE_CURRENT_LIST_DIR}/real_slow_link.sh $<TARGET_FILE:gccl_executable>)
set_tests_properties(real_slow_link PROPERTIES RUN_SERIAL TRUE SKIP_RETURN_CODE 77 TIMEOUT 120)
