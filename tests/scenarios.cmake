# Every shipped scenario holds on both engines. What takes minutes is left to scripts/long: 512 and 2048 ranks on SimGrid
# and the 2048-rank sweep on the model engine.
file(GLOB scenarios CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/scenarios/*.json)
foreach(file IN LISTS scenarios)
  get_filename_component(scenario ${file} NAME_WE)
  foreach(engine model simgrid)
    if(scenario STREQUAL "allreduce-2048" OR (engine STREQUAL "simgrid" AND scenario STREQUAL "allgather-zero"))
      continue()
    endif()
    add_test(NAME scenario_${scenario}_${engine} COMMAND gccl_executable run ${file} --engine ${engine} --quiet --jobs 2)
    set_tests_properties(scenario_${scenario}_${engine} PROPERTIES TIMEOUT 600)
  endforeach()
endforeach()
