# test_tcp looks inside the TCP backend.
target_link_libraries(test_tcp PRIVATE gccl_runtime)
