// `gccl bench` and `gccl calibrate` under gccl launch, torchrun or any starter that GCCL_Init knows; and the ranks of
// `gccl run --engine real`.
#include "cli/bench/run.hpp"
#include "cli/calibrate/run.hpp"
#include "cli/real/rank.hpp"

namespace {

GCCL_Config config_of(const std::string& backends) {
  GCCL_Config config = GCCL_CONFIG_INIT;
  if (!backends.empty()) config.backends = backends.c_str();
  return config;
}

}  // namespace

extern "C" int gccl_bench(const std::string& backends, const std::vector<std::string>& args, gccl::bench::Parse parse,
                          std::string* error) {
  return gccl::bench::run(config_of(backends), args, parse, error);
}

extern "C" int gccl_calibrate(const std::string& backends, const std::vector<std::string>& args,
                              gccl::calibrate::Parse parse, std::size_t columns, std::string* error) {
  return gccl::calibrate::run(config_of(backends), args, parse, columns, error);
}

extern "C" void gccl_real_rank(const gccl::real::RankProgram& program) { gccl::real::run_rank(program); }
