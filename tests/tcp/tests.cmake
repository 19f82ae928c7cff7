# The same over connections that resume, and with frames that are checked: what holds without holds with it.
foreach(subject tcp_traffic tcp_faults tcp_callers tcp_resume)
  foreach(with resuming checked both)
    if(with STREQUAL "resuming")
      set(variables GCCL_LINK_LOST_MS=2000)
    elseif(with STREQUAL "checked")
      set(variables GCCL_LINK_CHECK=1)
    else()
      set(variables GCCL_LINK_LOST_MS=2000 GCCL_LINK_CHECK=1)
    endif()
    # Those of resuming say themselves when they do, and those of handshakes send no frames.
    if((subject STREQUAL "tcp_resume" AND NOT with STREQUAL "checked") OR
       (NOT subject STREQUAL "tcp_traffic" AND NOT subject STREQUAL "tcp_resume" AND NOT with STREQUAL "resuming"))
      continue()
    endif()
    add_test(NAME ${subject}_${with} COMMAND test_tcp "--source-file=*/tcp/${subject}.cpp")
    set_tests_properties(${subject}_${with} PROPERTIES ENVIRONMENT "${variables}" TIMEOUT 600
                                                       FAIL_REGULAR_EXPRESSION "test cases: +0 ")
  endforeach()
endforeach()
