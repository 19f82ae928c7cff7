# The MPI drop-in, preloaded under mpirun; one ctest per number of ranks. MPI itself, called as PMPI_*, is the oracle.
if(TARGET gccl_pmpi)
  # coll/tuned picks algorithms by what each rank calls its types, and hangs in some of the cases; coll/basic does not.
  set(pmpi_environment
      "OMPI_ALLOW_RUN_AS_ROOT=1;OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1;OMPI_MCA_mpi_yield_when_idle=1;OMPI_MCA_coll=^tuned")
  add_executable(test_pmpi pmpi/semantics.cpp pmpi/movement.cpp pmpi/reduction.cpp pmpi/progress.cpp pmpi/errors.cpp
                           pmpi/error_handlers.cpp pmpi/support.cpp)
  set_source_files_properties(pmpi/support.cpp PROPERTIES COMPILE_OPTIONS -O2)  # it fills all buffers
  gccl_join(test_pmpi pmpi pmpi/semantics.cpp pmpi/movement.cpp pmpi/reduction.cpp pmpi/progress.cpp pmpi/errors.cpp
            pmpi/error_handlers.cpp)
  target_include_directories(test_pmpi PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(test_pmpi PRIVATE MPI::MPI_CXX doctest::doctest ${CMAKE_DL_LIBS})
  foreach(ranks 1 2 4 5 8)
    set(long)
    if(ranks EQUAL 8)  # 20 s of CPU: scripts/long has it
      set(long CONFIGURATIONS long)
    endif()
    add_test(NAME pmpi_${ranks}
             COMMAND ${MPIEXEC_EXECUTABLE} --oversubscribe ${MPIEXEC_NUMPROC_FLAG} ${ranks}
                     -x LD_PRELOAD=$<TARGET_FILE:gccl_pmpi> $<TARGET_FILE:test_pmpi> ${long})
    set_tests_properties(pmpi_${ranks} PROPERTIES TIMEOUT 300 PROCESSORS 6 ENVIRONMENT "${pmpi_environment}")
  endforeach()

  add_test(NAME pmpi_over_mpi
           COMMAND ${MPIEXEC_EXECUTABLE} --oversubscribe ${MPIEXEC_NUMPROC_FLAG} 2
                   -x LD_PRELOAD=$<TARGET_FILE:gccl_pmpi> -x GCCL_BACKENDS=mpi $<TARGET_FILE:test_pmpi>)
  set_tests_properties(pmpi_over_mpi PROPERTIES TIMEOUT 300 PROCESSORS 3 ENVIRONMENT "${pmpi_environment}")

  add_executable(test_pmpi_threads pmpi/threads.cpp pmpi/support.cpp)
  target_include_directories(test_pmpi_threads PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(test_pmpi_threads PRIVATE MPI::MPI_CXX Threads::Threads ${CMAKE_DL_LIBS})
  foreach(ranks 1 2 4 8)
    add_test(NAME pmpi_threads_${ranks}
             COMMAND ${MPIEXEC_EXECUTABLE} --oversubscribe ${MPIEXEC_NUMPROC_FLAG} ${ranks}
                     -x LD_PRELOAD=$<TARGET_FILE:gccl_pmpi> $<TARGET_FILE:test_pmpi_threads>)
    set_tests_properties(pmpi_threads_${ranks} PROPERTIES TIMEOUT 300 PROCESSORS 6 SKIP_RETURN_CODE 77
                                                          ENVIRONMENT "${pmpi_environment}")
  endforeach()

  add_executable(test_pmpi_endings pmpi/endings.cpp)
  target_link_libraries(test_pmpi_endings PRIVATE gccl MPI::MPI_CXX)
  add_test(NAME pmpi_endings COMMAND bash ${CMAKE_CURRENT_LIST_DIR}/endings.sh ${MPIEXEC_EXECUTABLE}
                                     $<TARGET_FILE:gccl_pmpi> $<TARGET_FILE:test_pmpi_endings>)
  set_tests_properties(pmpi_endings PROPERTIES TIMEOUT 500 ENVIRONMENT "${pmpi_environment}")

  add_executable(test_pmpi_both_ways pmpi/both_ways.cpp pmpi/support.cpp)
  target_include_directories(test_pmpi_both_ways PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(test_pmpi_both_ways PRIVATE MPI::MPI_CXX ${CMAKE_DL_LIBS})
  add_test(NAME pmpi_both_ways COMMAND bash ${CMAKE_CURRENT_LIST_DIR}/both_ways.sh ${MPIEXEC_EXECUTABLE}
                                       $<TARGET_FILE:gccl_pmpi> $<TARGET_FILE:test_pmpi_both_ways>)
  set_tests_properties(pmpi_both_ways PROPERTIES TIMEOUT 900 ENVIRONMENT "${pmpi_environment}")

  add_library(other_mpi SHARED pmpi/other_mpi.cpp)
  target_compile_definitions(other_mpi PRIVATE LIBRARY=1)
  set_target_properties(other_mpi PROPERTIES OUTPUT_NAME mpich SOVERSION 12)
  add_executable(program_of_other_mpi pmpi/other_mpi.cpp)
  target_link_libraries(program_of_other_mpi PRIVATE other_mpi)
  add_library(tool_of_mpi SHARED pmpi/tool.cpp)
  target_link_libraries(tool_of_mpi PRIVATE MPI::MPI_CXX)
  add_executable(program_of_tool pmpi/endings.cpp pmpi/tool.cpp)
  target_link_libraries(program_of_tool PRIVATE gccl MPI::MPI_CXX)
  add_executable(program_beside_tool pmpi/endings.cpp)
  target_link_libraries(program_beside_tool PRIVATE -Wl,--no-as-needed tool_of_mpi gccl MPI::MPI_CXX)
  add_test(NAME pmpi_wrapper
           COMMAND bash ${CMAKE_CURRENT_LIST_DIR}/wrapper.sh ${MPIEXEC_EXECUTABLE} $<TARGET_FILE:gccl_executable>
                   $<TARGET_FILE:test_pmpi_endings> $<TARGET_FILE:program_of_other_mpi> $<TARGET_FILE:gccl>
                   $<TARGET_FILE:tool_of_mpi> $<TARGET_FILE:program_of_tool> $<TARGET_FILE:program_beside_tool>)
  set_tests_properties(pmpi_wrapper PROPERTIES TIMEOUT 500 ENVIRONMENT "${pmpi_environment}")

  # The table of scripts/suites; it needs no suite. Its programs are not instrumented, and so cannot load a drop-in that is.
  if(NOT GCCL_SANITIZE)
    add_test(NAME suites_table COMMAND bash ${CMAKE_CURRENT_LIST_DIR}/suites_table.sh ${PROJECT_SOURCE_DIR}
                                       $<TARGET_FILE:gccl_executable> ${MPIEXEC_EXECUTABLE})
    set_tests_properties(suites_table PROPERTIES TIMEOUT 300)
  endif()
endif()
