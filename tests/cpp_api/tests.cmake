target_compile_definitions(test_cpp_api_header PRIVATE GCCL_TEST_CXX="${CMAKE_CXX_COMPILER}")
