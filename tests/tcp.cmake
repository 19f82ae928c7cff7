# Tests that look inside the TCP backend.
foreach(subject frames traffic faults callers)
  target_link_libraries(test_tcp_${subject} PRIVATE gccl_runtime)
endforeach()
