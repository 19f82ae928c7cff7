# Subjects that look inside the runtime: how ranks find each other.
foreach(subject net handshake store bootstrap launch variables)
  if(TARGET test_${subject})
    target_link_libraries(test_${subject} PRIVATE gccl_runtime OpenSSL::Crypto)
  endif()
endforeach()
