# Tests that run under mpirun, one ctest per number of ranks.
if(TARGET gccl_backend_mpi)
  # As root in a container, and with more ranks than cores.
  set(mpi_environment "OMPI_ALLOW_RUN_AS_ROOT=1;OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1;OMPI_MCA_mpi_yield_when_idle=1")

  # NAME_RANKS: so many ranks of test_NAME, which finds the backend mpi.
  function(gccl_mpi_test name ranks)  # then: what add_test takes besides
    add_test(NAME ${name}_${ranks} COMMAND ${MPIEXEC_EXECUTABLE} --oversubscribe ${MPIEXEC_NUMPROC_FLAG} ${ranks}
                                           $<TARGET_FILE:test_${name}> ${ARGN})
    set_tests_properties(${name}_${ranks} PROPERTIES TIMEOUT 300 PROCESSORS 6 ENVIRONMENT
                         "${mpi_environment};GCCL_BACKEND_PATH=$<TARGET_FILE_DIR:gccl_backend_mpi>")
  endfunction()

  add_executable(test_mpi_collectives mpi/collectives.cpp)
  target_link_libraries(test_mpi_collectives PRIVATE gccl_bench_loop MPI::MPI_CXX doctest::doctest)
  add_dependencies(test_mpi_collectives gccl_backend_mpi)
  foreach(ranks 1 2 3 5)
    gccl_mpi_test(mpi_collectives ${ranks})
  endforeach()
  gccl_mpi_test(mpi_collectives 8 CONFIGURATIONS long)  # 20 s of CPU: scripts/long has it
  set_property(TEST mpi_collectives_2 APPEND PROPERTY ENVIRONMENT GCCL_TEST_MPI_THREADS=serialized)
  set_property(TEST mpi_collectives_3 APPEND PROPERTY ENVIRONMENT GCCL_TEST_MPI_THREADS=multiple)

  # The same ranks over the C interface.
  add_executable(test_mpi_c_interface mpi/c_interface.cpp)
  target_link_libraries(test_mpi_c_interface PRIVATE gccl_test_ranks MPI::MPI_CXX doctest::doctest)
  add_dependencies(test_mpi_c_interface gccl_backend_mpi)
  foreach(ranks 2 3)
    gccl_mpi_test(mpi_c_interface ${ranks})
  endforeach()

  add_test(NAME mpi_bench COMMAND sh ${CMAKE_CURRENT_LIST_DIR}/bench.sh ${MPIEXEC_EXECUTABLE}
                                  $<TARGET_FILE:gccl_executable>)
  add_test(NAME mpi_calibrate COMMAND sh ${CMAKE_CURRENT_LIST_DIR}/calibrate.sh ${MPIEXEC_EXECUTABLE}
                                      $<TARGET_FILE:gccl_executable>)
  set_tests_properties(mpi_bench mpi_calibrate PROPERTIES TIMEOUT 300 ENVIRONMENT "${mpi_environment}")
endif()
