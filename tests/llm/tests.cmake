# Shipped workloads hold what they expect; the two large ones, which take 2 s each, are scripts/long's.
foreach(workload chakra-step decode-tensor-8 deepseek-v3-layers fsdp-llama3-70b moe-skewed)
  add_test(NAME workload_${workload} COMMAND gccl_executable run ${PROJECT_SOURCE_DIR}/workloads/${workload}.json --quiet)
  set_tests_properties(workload_${workload} PROPERTIES TIMEOUT 300)
endforeach()
