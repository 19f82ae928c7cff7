// `gccl verify`: proves the algorithms right.
#include "libgccl/verify/verify.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "cli/output.hpp"
#include "libgccl/algorithms/algorithm.hpp"
#include "libgccl/json/nearest.hpp"
#include "sim/flow/cost_check.hpp"

namespace gccl {
namespace {

using Json = nlohmann::json;
using Clock = std::chrono::steady_clock;

struct VerifyArguments {
  std::string collective, json;
  SweepOptions sweep;
};

struct Proof {
  Tally tally;
  double wall_s;
  std::optional<std::string> wrong_cost;

  bool ok() const { return tally.proved() && !wrong_cost; }
};

Json to_json(const Proof& p) {
  const Tally& t = p.tally;
  Json failure = nullptr;
  if (t.failure)
    failure = {{"kind", name(t.failure->kind)}, {"text", t.failure->text}};
  else if (p.wrong_cost)
    failure = {{"kind", "closed form"}, {"text", *p.wrong_cost}};
  return {{"collective", name(t.algorithm->kind)},
          {"algorithm", t.algorithm->name},
          {"cases", t.cases},
          {"unfit", t.unfit},
          {"messages", t.messages},
          {"ok", p.ok()},
          {"failure", std::move(failure)},
          {"wall_s", p.wall_s}};
}

void print(const Proof& p) {
  const Tally& t = p.tally;
  fmt::print("{:<14} {:<40} {:>8} {:>11} {:>8.2f}  {}\n", name(t.algorithm->kind), t.algorithm->name, t.cases,
             t.messages, p.wall_s, p.ok() ? "proved" : "FAILED");
  if (t.failure) fmt::print("  {}\n", t.failure->text);
  if (p.wrong_cost) fmt::print("  {}\n", *p.wrong_cost);
  if (t.cases == 0) fmt::print("  it could serve none of {} cases\n", t.unfit);
  flush_stdout();
}

int bad_input(const std::string& what) {
  write_stderr(fmt::format("gccl verify: {}\n", printable_line(what)));
  return 2;
}

int command_verify(VerifyArguments a) {
  if (!a.collective.empty()) {
    a.sweep.collective = collective_named(a.collective);
    if (!a.sweep.collective)
      return bad_input(
          fmt::format("no collective \"{}\"{}", a.collective, suggestion(a.collective, collective_names())));
  }
  const std::vector<std::string_view> names = algorithm_names(a.sweep.collective);
  if (!a.sweep.algorithm.empty() && std::find(names.begin(), names.end(), a.sweep.algorithm) == names.end())
    return bad_input(fmt::format("no algorithm \"{}\"{}{}", a.sweep.algorithm,
                                 a.collective.empty() ? "" : fmt::format(" for {}", a.collective),
                                 suggestion(a.sweep.algorithm, names)));
  const bool table = a.json != "-";
  check_outputs({a.json}, {});
  if (table) fmt::print("{:<14} {:<40} {:>8} {:>11} {:>8}\n", "collective", "algorithm", "cases", "messages", "wall_s");
  std::vector<Proof> proofs;
  bool ok = true;
  Clock::time_point begin = Clock::now();
  sweep(a.sweep, algorithms(), [&](const Tally& t) {
    std::optional<std::string> wrong_cost = sim::wrong_cost(*t.algorithm);
    const Clock::time_point end = Clock::now();
    proofs.push_back({t, std::chrono::duration<double>(end - begin).count(), std::move(wrong_cost)});
    begin = end;
    ok = ok && proofs.back().ok();
    if (table) print(proofs.back());
  });

  if (!a.json.empty()) {
    Json out = {{"schema", "gccl/verify/1"}, {"seed", a.sweep.seed},  {"ranks_max", a.sweep.ranks_max},
                {"quick", a.sweep.quick},    {"algorithms", nullptr}, {"ok", ok}};
    out["algorithms"] = Json::array();
    for (const Proof& p : proofs) out["algorithms"].push_back(to_json(p));
    write_output(a.json, out.dump(1) + '\n');
  }
  return ok ? 0 : 1;
}

}  // namespace

// Sets exit_code to 0 where all is proved, 1 on a failure, 2 for wrong input.
void add_verify(Command& app, int& exit_code) {
  const auto a = std::make_shared<VerifyArguments>();
  Command* verify = app.add_subcommand(
      "verify", "Proves algorithms right: every rank's result over a sweep of cases, and closed forms by simulation");
  verify->add_option("--collective", a->collective, "Only this collective")
      ->value("NAME")
      ->suggest(OneOf(collective_names().begin(), collective_names().end()));
  const std::vector<std::string_view> names = algorithm_names();
  verify->add_option("--algorithm", a->sweep.algorithm, "Only this algorithm")
      ->value("NAME")
      ->suggest(OneOf(names.begin(), names.end()));
  verify->add_option("--max-ranks", a->sweep.ranks_max, "Largest number of ranks")
      ->check(Range{1, 4096})
      ->capture_default_str();
  verify->add_option("--seed", a->sweep.seed, "Choice of cases, elements and orders of completion")
      ->capture_default_str();
  verify->add_flag("--quick", a->sweep.quick, "Fewer cases: seconds instead of minutes");
  verify->add_option("--json", a->json, "Write the result to a file, or - for standard output alone")->value("FILE");
  verify->examples({"gccl verify --quick", "gccl verify --collective allreduce --algorithm ring"});
  verify->callback([a, &exit_code] { exit_code = command_verify(*a); });
}

}  // namespace gccl
