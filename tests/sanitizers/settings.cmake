# What a sanitized build changes about the tests, after all have been added: their limits, and the sanitizers' options.
get_property(tests DIRECTORY PROPERTY TESTS)
foreach(test IN LISTS tests)
  get_property(limit TEST ${test} PROPERTY TIMEOUT)
  if(limit)
    math(EXPR limit "${limit} * ${GCCL_TEST_SLOWDOWN}")
    set_property(TEST ${test} PROPERTY TIMEOUT ${limit})
  endif()
  set(address "")
  set(thread "")
  # They run ranks of Open MPI; those of the first two also ask for more memory than there is.
  if(test MATCHES "^(mpi_|pmpi_|sweep_together$)")
    # Any thread moves the others' messages within MPI, by locks that the sanitizer does not see.
    set(thread ":ignore_noninstrumented_modules=1")
    # The MPI drop-in is preloaded, and so comes before the sanitizer's library. Open MPI leaks thousands of pieces in
    # plug-ins that it has unloaded by then, so that no suppression can name them.
    set(address "verify_asan_link_order=0:detect_leaks=0:allocator_may_return_null=1")
  endif()
  if(test STREQUAL "runtime_process")
    # Its children are forked while threads run, whose memory (libcrypto's) nobody in the child refers to.
    set(address "detect_leaks=0")
  endif()
  set_property(TEST ${test} APPEND PROPERTY ENVIRONMENT "GCCL_TEST_SANITIZED=1" "ASAN_OPTIONS=${address}" "UBSAN_OPTIONS=print_stacktrace=1"
               "TSAN_OPTIONS=suppressions=${CMAKE_CURRENT_LIST_DIR}/races.txt:second_deadlock_stack=1${thread}")
endforeach()
