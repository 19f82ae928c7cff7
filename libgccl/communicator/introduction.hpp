// What each rank says about itself when a job starts, and whether the ranks fit each other.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gccl/gccl.h"
#include "libgccl/base/processors.hpp"
#include "libgccl/communicator/recovery/contact.hpp"
#include "libgccl/select/authorities.hpp"

namespace gccl {

// What must be the same on every rank, as each has read it.
struct AgreedSettings {
  Authorities authorities{};
  int check = 0;
  std::string on_failure{}, link_lost_ms{};
  bool link_check = false;
  int link_slow = 0;
  bool link_avoid = true;
  std::string backends{};
  std::string parameters{};  // the file of GCCL_PARAMETERS, whose name may differ between ranks
  std::string costs{};       // what is in it
};

// Of fixed size; sent as it is between ranks of one release.
struct Introduction {
  static constexpr std::size_t kSettings = 12;

  std::uint64_t id = 0;  // rank 0's names the communicator
  std::uint32_t version = GCCL_VERSION_CODE;
  std::int32_t code = 0;    // of what went wrong on this rank
  std::uint64_t plans = 0;  // digest of what this rank's library would do with many calls
  Contact contact;
  ProcessorShare processors;
  char host[240] = {};
  char text[240] = {};  // why
  struct Value {
    std::uint64_t digest = 0;
    char text[120] = {};  // shortened
  } settings[kSettings];  // that must be the same on every rank

  // For one that came from another process: makes sure that every text ends.
  void end_texts();
  // Also shortens what does not fit.
  void set_error(const Status& why);
  void set_host(const std::string& name);
  void set_plans(Rank ranks);
  void set_settings(const AgreedSettings& mine);
};

// Why a process with this introduction cannot join members with that one; ok where it can. Both with the plans of as
// many ranks.
Status misfit(const Introduction& joins, const Introduction& member);

// The same on every rank: which ranks have failed, or which two differ in what.
Status compare(const std::vector<Introduction>& all, Rank me);

}  // namespace gccl
