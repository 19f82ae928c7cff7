# These look inside the shared-memory transport.
foreach(subject shm shm_pipe shm_files)
  target_link_libraries(test_${subject} PRIVATE gccl_runtime)
endforeach()
