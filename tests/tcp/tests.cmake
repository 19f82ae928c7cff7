# The same over connections that resume: what holds without GCCL_LINK_LOST_MS holds with it.
foreach(subject tcp_traffic tcp_faults tcp_callers)
  add_test(NAME ${subject}_resuming COMMAND test_tcp "--source-file=*/tcp/${subject}.cpp")
  set_tests_properties(${subject}_resuming PROPERTIES ENVIRONMENT GCCL_LINK_LOST_MS=2000 TIMEOUT 600
                                                      FAIL_REGULAR_EXPRESSION "test cases: +0 ")
endforeach()
