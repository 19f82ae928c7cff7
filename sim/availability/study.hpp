// Availability over months: how much of a cluster's time goes into work that is kept, given how often nodes fail, how
// often checkpoints are written, and what is done about a failure.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "libgccl/json/reader.hpp"

namespace gccl::sim {

// "gccl/failures/1": published rates, each with its source.
struct FailureRates {
  struct Cause {
    std::string name;
    double per_card_day = 0, per_node_day = 0;
  };
  std::string name, source;
  std::vector<Cause> causes;
};

enum class AvailabilityPolicy : std::uint8_t {
  restart,  // the job stops, and begins again from the last checkpoint on as many nodes as before
  shrink,   // the others go on without the node, which comes back when it is repaired
  spare,    // the same, and a spare node takes its place
};

std::span<const std::string_view> availability_policies();

// "gccl/availability/1". Times in seconds.
struct AvailabilityStudy {
  std::string name, description;
  FailureRates rates;
  std::vector<std::uint64_t> cards;  // each is a job of its own
  std::uint64_t cards_per_node = 8;
  double days = 30;
  unsigned replicas = 20;  // of each setting, with random numbers of their own
  std::uint64_t seed = 1;
  std::vector<double> intervals;      // of work between checkpoints
  double write = 0;                   // of a checkpoint, during which nothing else is done
  double detection = 0, restart = 0;  // until a failure is known; from then until the job works again
  double shrink = 0;                  // likewise for the others to go on without the node, or with its replacement
  double step = 0;                    // of training: half of one is lost when the others go on
  double repair = 86400;              // until a node that has failed is back
  std::vector<AvailabilityPolicy> policies;
  std::vector<std::uint64_t> spares;  // nodes
  // Expectations; negative: none.
  double min_goodput = -1, max_daly_error = -1;        // of the best setting; of every one that the formula is about
  std::vector<std::pair<std::uint64_t, double>> mttf;  // cards, seconds
  double mttf_tolerance = 0.1;
};

// What came of all replicas of a setting, as parts of the time of all nodes of the job.
struct AvailabilityOutcome {
  std::uint64_t cards = 0;
  AvailabilityPolicy policy{};
  std::uint64_t spares = 0;
  double interval = 0;
  double goodput = 0, lowest = 1, highest = 0;  // mean, and the worst and best replica
  double error = 0;                             // of the mean: its standard deviation; of one replica 0
  double writing = 0, lost = 0, down = 0, waiting = 0, missing = 0;  // what the rest went to
  std::uint64_t failures = 0;                                        // of all replicas
  double at_risk = 0;  // seconds in which they happened, of all nodes of the job: less where some are in repair
  double daly = -1;    // what the formula says of this setting; -1: it is about others
};

// `shipped`: the file of rates that a name means where there is none beside the study. Throws json::InputError.
AvailabilityStudy read_study(const json::Node& node, const std::function<std::string(const json::Node&)>& shipped);
FailureRates read_rates(const json::Node& node);

inline constexpr double kDay = 86400;  // seconds

// Of a job on so many cards, while all its nodes are there.
double failures_per_second(const AvailabilityStudy& study, std::uint64_t cards);

std::vector<AvailabilityOutcome> simulate(const AvailabilityStudy& study);

// Daly, "A higher order estimate of the optimum checkpoint interval for restart dumps", FGCS 22 (2006), equation 20:
// the part of the time that is kept, with exponential times `mttf` between failures, during restarts too. Seconds.
double daly_goodput(double interval, double write, double restart, double mttf);
// The best interval: Young's (CACM 17, 1974), and Daly's of higher order (equation 37).
double young_interval(double write, double mttf);
double daly_interval(double write, double mttf);

// "gccl/availability-result/1": settings, expectations, whether all held.
nlohmann::json availability_json(const AvailabilityStudy& study, const std::vector<AvailabilityOutcome>& outcomes);
std::string availability_text(const nlohmann::json& result);
std::string availability_html(const nlohmann::json& result);

}  // namespace gccl::sim
