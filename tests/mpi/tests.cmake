# Tests that run under mpirun, one ctest per number of ranks.
if(TARGET gccl_backend_mpi)
  # As root in a container, and with more ranks than cores.
  set(mpi_environment "OMPI_ALLOW_RUN_AS_ROOT=1;OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1;OMPI_MCA_mpi_yield_when_idle=1")

  add_executable(test_mpi_collectives mpi/collectives.cpp)
  target_link_libraries(test_mpi_collectives PRIVATE gccl_bench_loop MPI::MPI_CXX doctest::doctest)
  add_dependencies(test_mpi_collectives gccl_backend_mpi)
  foreach(ranks 1 2 3 5 8)
    set(threads "")
    if(ranks EQUAL 3)
      set(threads ";GCCL_TEST_MPI_THREADS=1")
    endif()
    add_test(NAME mpi_collectives_${ranks}
             COMMAND ${MPIEXEC_EXECUTABLE} --oversubscribe ${MPIEXEC_NUMPROC_FLAG} ${ranks}
                     $<TARGET_FILE:test_mpi_collectives>)
    set_tests_properties(mpi_collectives_${ranks} PROPERTIES TIMEOUT 300 PROCESSORS 6 ENVIRONMENT
                         "${mpi_environment};GCCL_BACKEND_PATH=$<TARGET_FILE_DIR:gccl_backend_mpi>${threads}")
  endforeach()

  # The same ranks over the C interface.
  add_executable(test_mpi_c_interface mpi/c_interface.cpp)
  target_link_libraries(test_mpi_c_interface PRIVATE gccl_test_ranks MPI::MPI_CXX doctest::doctest)
  add_dependencies(test_mpi_c_interface gccl_backend_mpi)
  foreach(ranks 2 3)
    add_test(NAME mpi_c_interface_${ranks}
             COMMAND ${MPIEXEC_EXECUTABLE} --oversubscribe ${MPIEXEC_NUMPROC_FLAG} ${ranks}
                     $<TARGET_FILE:test_mpi_c_interface>)
    set_tests_properties(mpi_c_interface_${ranks} PROPERTIES TIMEOUT 300 PROCESSORS 6 ENVIRONMENT
                         "${mpi_environment};GCCL_BACKEND_PATH=$<TARGET_FILE_DIR:gccl_backend_mpi>")
  endforeach()

  add_test(NAME mpi_bench COMMAND sh ${CMAKE_CURRENT_LIST_DIR}/bench.sh ${MPIEXEC_EXECUTABLE}
                                  $<TARGET_FILE:gccl_executable>)
  set_tests_properties(mpi_bench PROPERTIES TIMEOUT 300 ENVIRONMENT "${mpi_environment}")
endif()
