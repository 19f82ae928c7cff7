target_compile_definitions(test_cpp_api PRIVATE GCCL_TEST_CXX="${CMAKE_CXX_COMPILER}")
