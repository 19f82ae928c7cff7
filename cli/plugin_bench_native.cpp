// `gccl bench` and `gccl calibrate` under gccl launch, torchrun or any starter that GCCL_Init knows; the ranks of `gccl
// run --engine real`; and the processes of gccl launch that share a command's work.
#include "cli/bench/job_team.hpp"
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

extern "C" gccl::bench::Team* gccl_team(const char* command, std::string* error) {
  return gccl::bench::meet_team(config_of(""), command, nullptr, error);
}
