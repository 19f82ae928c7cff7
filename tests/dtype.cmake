# With the loops themselves.
target_link_libraries(test_dtype PRIVATE gccl_combine)
