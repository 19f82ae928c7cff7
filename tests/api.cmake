# Subjects that use the library as its users do: through what libgccl.so exports.
foreach(subject cpp_api cpp_api_groups topology_builder)
  target_link_libraries(test_${subject} PRIVATE gccl_test_ranks)
endforeach()
