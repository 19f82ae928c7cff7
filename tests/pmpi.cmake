# The MPI drop-in, preloaded under mpirun; one ctest per number of ranks. MPI itself, called as PMPI_*, is the oracle.
if(MPI_CXX_FOUND)
  add_executable(test_pmpi pmpi/semantics.cpp pmpi/movement.cpp pmpi/reduction.cpp pmpi/support.cpp)
  target_include_directories(test_pmpi PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(test_pmpi PRIVATE MPI::MPI_CXX doctest::doctest ${CMAKE_DL_LIBS})
  # coll/tuned picks algorithms by what each rank calls its types, and hangs in some of the cases; coll/basic does not.
  foreach(ranks 1 2 3 4 5 8)
    add_test(NAME pmpi_${ranks}
             COMMAND ${MPIEXEC_EXECUTABLE} --oversubscribe ${MPIEXEC_NUMPROC_FLAG} ${ranks}
                     -x LD_PRELOAD=$<TARGET_FILE:gccl_pmpi> $<TARGET_FILE:test_pmpi>)
    set_tests_properties(pmpi_${ranks} PROPERTIES TIMEOUT 300 PROCESSORS 2 ENVIRONMENT
      "OMPI_ALLOW_RUN_AS_ROOT=1;OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1;OMPI_MCA_mpi_yield_when_idle=1;OMPI_MCA_coll=^tuned")
  endforeach()
endif()
