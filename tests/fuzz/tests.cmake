# The readers under arbitrary bytes: with libFuzzer (preset fuzz, scripts/long), and as a test that replays the corpus and
# the shipped files.
function(gccl_fuzz reader library)  # further arguments: folders of seeds beside the corpus
  add_executable(fuzz_${reader} fuzz/${reader}.cpp)
  target_link_libraries(fuzz_${reader} PRIVATE ${library})
  target_compile_definitions(fuzz_${reader} PRIVATE GCCL_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  if(GCCL_FUZZ)
    target_link_options(fuzz_${reader} PRIVATE -fsanitize=fuzzer)
  else()
    target_sources(fuzz_${reader} PRIVATE fuzz/replay.cpp)
    add_test(NAME fuzz_corpus_${reader} COMMAND fuzz_${reader} ${CMAKE_CURRENT_SOURCE_DIR}/fuzz/corpus/${reader} ${ARGN})
  endif()
endfunction()

gccl_fuzz(cluster gccl_sim ${PROJECT_SOURCE_DIR}/topologies)
gccl_fuzz(scenario gccl_sim ${PROJECT_SOURCE_DIR}/scenarios)
# Logs and tables of measurements, of whatever program.
gccl_fuzz(measured gccl_analysis_documents)
# What strangers and peers may send to a port.
gccl_fuzz(handshake gccl_runtime)
gccl_fuzz(frames gccl_runtime)
