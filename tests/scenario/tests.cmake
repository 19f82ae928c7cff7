# A scenario plans as real ranks do, so the test links what communicators plan by.
target_link_libraries(test_scenario PRIVATE gccl_runtime)
add_test(NAME planner COMMAND bash ${CMAKE_CURRENT_LIST_DIR}/planner.sh $<TARGET_FILE:gccl_executable> ${PROJECT_SOURCE_DIR})
set_tests_properties(planner PROPERTIES TIMEOUT 300)

# Every shipped scenario holds on all engines. What takes long is left to scripts/long (ctest -C long): 288, 512 and 2048 ranks on
# flow and SimGrid, bus-bandwidth there (8 and 14 s of CPU; its clusters are in simgrid_agreement, too), on SimGrid those
# of more than 5 s of CPU, which ./check plays by flow, and under sanitizers the 2048-rank sweep (40 s without).
file(GLOB scenarios CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/scenarios/*.json)
foreach(file IN LISTS scenarios)
  get_filename_component(scenario ${file} NAME_WE)
  foreach(engine model flow simgrid)
    if(engine STREQUAL "simgrid" AND NOT TARGET gccl_simgrid)
      continue()
    endif()
    set(long)
    if((NOT engine STREQUAL "model" AND scenario MATCHES "^(allreduce-2048|allgather-zero|gb200|bus-bandwidth)$") OR
       (engine STREQUAL "simgrid" AND
        scenario MATCHES
        "^(compare-clusters|hierarchical-vs-flat|oversubscribed|reduce-scatter-gradients|straggler|torus-tpu)$") OR
       (GCCL_SANITIZE AND scenario STREQUAL "allreduce-2048"))
      set(long CONFIGURATIONS long)
    endif()
    set(play gccl_executable run ${file} --engine ${engine} --quiet --jobs 2)
    if(scenario STREQUAL "allreduce-2048" AND engine STREQUAL "model")  # what it prints is README's sample
      set(play bash ${CMAKE_CURRENT_LIST_DIR}/readme_sample.sh $<TARGET_FILE:gccl_executable> ${PROJECT_SOURCE_DIR})
    endif()
    add_test(NAME scenario_${scenario}_${engine} COMMAND ${play} ${long})
    set_tests_properties(scenario_${scenario}_${engine} PROPERTIES TIMEOUT 600)
    if(long)
      set_tests_properties(scenario_${scenario}_${engine} PROPERTIES TIMEOUT 7200 LABELS long)
    endif()
  endforeach()
endforeach()

# Every shipped scenario with faults holds.
file(GLOB scenarios CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/scenarios/faults/*.json)
add_test(NAME scenario_faults_shipped COMMAND gccl_executable run ${scenarios} --quiet --jobs 1)
set_tests_properties(scenario_faults_shipped PROPERTIES TIMEOUT 300)
