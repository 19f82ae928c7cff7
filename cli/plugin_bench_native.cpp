// `gccl bench` under gccl launch, torchrun or any starter that GCCL_Init knows.
#include "cli/bench/run.hpp"

extern "C" int gccl_bench(const std::string& backends, const std::vector<std::string>& args, gccl::bench::Parse parse,
                          std::string* error) {
  GCCL_Config config = GCCL_CONFIG_INIT;
  if (!backends.empty()) config.backends = backends.c_str();
  return gccl::bench::run(config, args, parse, error);
}
