# The tuner for NCCL, loaded as NCCL loads it.
gccl_test_room(nccl_tuner ${CMAKE_DL_LIBS})
target_compile_definitions(test_nccl_tuner PRIVATE GCCL_TUNER="$<TARGET_FILE:gccl_nccl_tuner>")
add_dependencies(test_nccl_tuner gccl_nccl_tuner)
