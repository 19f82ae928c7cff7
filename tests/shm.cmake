# test_shm looks inside the shared-memory transport.
target_link_libraries(test_shm PRIVATE gccl_runtime)
