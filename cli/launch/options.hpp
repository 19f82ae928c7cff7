// What a user may ask of `gccl launch`.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/command.hpp"

namespace gccl::launch {

constexpr int kRanksMax = 65536;

struct Options {
  std::vector<std::string> hosts;  // one entry for each rank; empty strings: this machine
  bool local = true;
  std::vector<std::string> program;
  std::vector<std::pair<std::string, std::string>> environment;
  std::string secret_file, store;
  std::string bind;  // "core", "none", or empty: core, on this machine
  int port = 0;      // 0: any
  int spares = 0, restarts = 0;
  double timeout_s = 0, grace_s = 2;
  bool tag = false, keep_going = false;
};

// Which a shell can export.
bool is_variable_name(std::string_view name);

// Of an entry of Options.hosts, without the user before it.
std::string host_of(const std::string& entry);

// For the help of others.
Command option_table();

// `args` without program and subcommand. Options end at "--", or at the first word that is none.
Parsed<Options> parse_options(std::vector<std::string> args);

}  // namespace gccl::launch
