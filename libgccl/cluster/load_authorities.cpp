#include "libgccl/cluster/load_authorities.hpp"

#include "gccl/gccl.h"
#include "libgccl/cluster/tuning_file.hpp"

namespace gccl {

Status load_authorities(const std::function<const char*(const char* name)>& environment, Authorities* out) try {
  const auto value = [&](const char* name) {
    const char* const text = environment(name);
    return std::string(text ? text : "");
  };
  if (Status s = Overrides::parse(value("GCCL_ALGORITHM"), &out->named); !s.ok()) return s;
  if (Status s = AlgorithmLists::parse(value("GCCL_ALGO"), &out->lists); !s.ok()) return s;
  if (const std::string file = value("GCCL_TUNING_FILE"); !file.empty())
    out->table = std::make_shared<const TuningTable>(load_tuning_table(file));
  return {};
} catch (const json::InputError& e) {
  return Status::error(std::string("GCCL_TUNING_FILE: ") + e.what(), GCCL_ERR_INVALID_ARGUMENT);
}

}  // namespace gccl
