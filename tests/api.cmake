# Subjects that use the library as its users do: through what libgccl.so exports.
foreach(subject cpp_api cpp_api_exceptions cpp_api_groups topology_builder)
  target_link_libraries(test_${subject} PRIVATE gccl_test_ranks)
endforeach()
target_compile_definitions(test_cpp_api_header PRIVATE GCCL_TEST_CXX="${CMAKE_CXX_COMPILER}")
