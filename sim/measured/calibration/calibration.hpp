// What `gccl calibrate` measures of a job's transports, and what parameters follow.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "libgccl/cluster/read/parameters.hpp"
#include "libgccl/schedule/types.hpp"
#include "sim/measured/calibration/curve.hpp"

namespace gccl::sim {

// What carries messages.
enum class Carrier : std::uint8_t { memory, tcp, mpi };
struct CarrierNames {
  const char *shown, *transport;
};
constexpr CarrierNames kCarriers[] = {{"shared memory", "shm"}, {"TCP", "tcp"}, {"MPI", "mpi"}};
inline const CarrierNames& names_of(Carrier c) { return kCarriers[std::size_t(c)]; }

// Two ranks of one node, or of different ones, and what stands for all such pairs.
struct PairClass {
  Carrier by = Carrier::tcp;
  Rank a = 0, b = 0;  // the pair of `ping_pong`
  Curve ping_pong{};  // half a round trip by bytes
  Curve at_once{};    // the same of several pairs of two nodes, all in the same direction at a time; may be empty
  Rank pairs_at_once = 0;
  // From one call to the next by the number of peers: one rank sends to each of them, each of them sends to one.
  Curve fan_out{}, fan_in{};
  Curve fan_out_long{}, fan_in_long{};  // the same with messages of `long_bytes`
  double long_bytes = 0;
  // How much longer other pairs took than the first, by size.
  struct Other {
    Rank a = 0, b = 0;
    std::vector<double> bytes{}, ratio{};
  };
  std::vector<Other> others{};
};

struct Calibration {
  std::string backends;  // as in GCCL_BACKENDS
  std::string date, processor;
  std::vector<Rank> node;  // by rank
  std::optional<PairClass> inside{}, between{};
  Curve combine{}, copy{};  // of 32-bit floats, by bytes
  Rank computing = 1;       // ranks that did so at once
  bool oversubscribed = false;
  Rank ranks() const { return Rank(node.size()); }
  Rank nodes() const;
};

struct ClassFit {
  CurveFit ping_pong;
  std::optional<CurveFit> at_once{};
  Estimate overhead_ns{}, receive_overhead_ns{};  // together at most the fixed time
  bool overhead_known = false;                    // else what is there is a bound, and the receiver's 0
};

struct CalibrationFit {
  std::optional<ClassFit> inside{}, between{};
  CurveFit combine, copy;
};

// Beyond this the receiver of GCCL's shared memory reads the sender's. Times do not show it: where two lines meet may
// be the end of a cache line or of a copy as well.
constexpr Count kEagerBytes = 32768;

CalibrationFit fit_calibration(const Calibration& c);

// What of the fit has a bandwidth that no time supports, because times do not grow with the size, as where noise is
// larger than what the bytes take; empty where nothing has. Sets are written of what is supported alone.
std::string unsupported_bandwidth(const CalibrationFit& fit);

// "gccl/parameters/1" and "gccl/cluster/1". `parameters`: how the cluster names the set.
nlohmann::ordered_json calibrated_parameters(const Calibration& c, const CalibrationFit& fit, const std::string& name);
nlohmann::ordered_json calibrated_cluster(const Calibration& c, const CalibrationFit& fit, const std::string& name,
                                          const std::string& parameters);
// "gccl/calibration/1": all that is in the text, for programs.
nlohmann::ordered_json calibration_json(const Calibration& c, const CalibrationFit& fit);
// Tables of what was measured and what was fitted, the parameters, and what does not fit.
std::string calibration_text(const Calibration& c, const CalibrationFit& fit, std::size_t columns);

// The names of the transport models that the set replaces costs of, and which class their `node` and `net` are from.
struct Replaced {
  std::string model;
  const ClassFit* node = nullptr;
  const ClassFit* net = nullptr;
  bool between_nodes = true;  // false: what it says of messages between nodes stays
};
std::vector<Replaced> replaced_models(const Calibration& c, const CalibrationFit& fit);

}  // namespace gccl::sim
