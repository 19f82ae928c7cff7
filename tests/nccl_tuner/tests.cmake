# The tuner for NCCL, loaded as NCCL loads it.
gccl_test_room(nccl_tuner ${CMAKE_DL_LIBS} ALONE nccl_itself)
target_compile_definitions(test_nccl_tuner PRIVATE GCCL_TUNER="$<TARGET_FILE:gccl_nccl_tuner>")
add_dependencies(test_nccl_tuner gccl_nccl_tuner)

# Where there is a GPU, NCCL itself loads it.
target_compile_definitions(test_nccl_itself PRIVATE GCCL_TUNER="$<TARGET_FILE:gccl_nccl_tuner>")
add_dependencies(test_nccl_itself gccl_nccl_tuner)
set_tests_properties(nccl_itself PROPERTIES SKIP_REGULAR_EXPRESSION "skipped, without NCCL and a GPU")
