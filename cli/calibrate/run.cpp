#include "cli/calibrate/run.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/calibrate/measure.hpp"
#include "cli/output.hpp"
#include "libgccl/base/environment.hpp"
#include "libgccl/json/reader.hpp"
#include "sim/measured/calibration/calibration.hpp"

namespace gccl::calibrate {
namespace {

namespace fs = std::filesystem;
using bench::Job;
using Ranks = std::vector<int>;

constexpr std::string_view kMeasured[] = {"shm,tcp", "shm", "tcp", "tcp,shm", "mpi"};
constexpr double kShortBytes = 8, kLongBytes = 1 << 20;
constexpr int kPeersMost = 15;
// Shares of the time.
constexpr double kPingPongShare = 3, kAtOnceShare = 2, kFansShare = 2, kRatesShare = 1, kOtherShare = 0.25;

std::string processor_name() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("model name"))
      if (const std::size_t at = line.find(": "); at != line.npos) return json::valid_text(line.substr(at + 2));
  return "a processor without a name";
}

std::string date_text() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  ::gmtime_r(&now, &utc);
  char text[40];
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M UTC", &utc);
  return text;
}

// Which ranks stand for a class of pairs.
struct Sample {
  std::vector<std::pair<int, int>> pairs;  // the first is measured in full
  Ranks fan{};                             // the one in the middle, and its peers
  std::vector<std::pair<int, int>> at_once{};
};

class Measurement {
 public:
  Measurement(Job& job, const Options& o)
      : job_(job),
        o_(o),
        sizes_(sizes_of(o)),
        long_bytes_(std::min(sizes_.back(), kLongBytes)),
        buffers_(std::size_t(std::max({sizes_.back(), kPeersMost * long_bytes_ + long_bytes_, kRateSizes.back()}))) {
    for (Rank r = 0; r < job.ranks(); ++r) {
      if (job.nodes()[r] >= members_.size()) members_.resize(job.nodes()[r] + 1);
      members_[job.nodes()[r]].push_back(int(r));
    }
    std::stable_sort(members_.begin(), members_.end(),
                     [](const Ranks& x, const Ranks& y) { return x.size() > y.size(); });
  }

  sim::Calibration run() {
    sim::Calibration c{.backends = job_.backends(),
                       .date = date_text(),
                       .processor = processor_name(),
                       .node = job_.nodes(),
                       .oversubscribed = job_.sum_over_ranks(job_.oversubscribed()) > 0};
    const std::optional<Sample> inside = inside_a_node(), between = between_nodes();
    double shares = kRatesShare;
    for (const auto* s : {&inside, &between})
      if (*s)
        shares += kPingPongShare + kFansShare + ((*s)->at_once.empty() ? 0 : kAtOnceShare) +
                  kOtherShare * double((*s)->pairs.size() - 1);
    seconds_of_share_ = o_.seconds / shares;
    const sim::Carrier far = c.backends == "mpi" ? sim::Carrier::mpi : sim::Carrier::tcp;
    if (inside) c.inside = measure(*inside, c.backends.starts_with("shm") ? sim::Carrier::memory : far);
    if (between) c.between = measure(*between, far);
    measure_rates(c);
    return c;
  }

 private:
  std::optional<Sample> inside_a_node() {
    const Ranks& m = members_[0];
    if (m.size() < 2) return std::nullopt;
    Sample s{.pairs = {{m[0], m[1]}}};
    for (std::size_t i = m.size() - 1; i > 1; i /= 2) add_pair(s, m[0], m[i]);
    for (const Ranks& other : members_)
      if (&other != &m && other.size() > 1) add_pair(s, other[0], other[1]);
    // Ranks that share a processor would measure its scheduler. The number is that node's, as others may have another.
    const double processors =
        job_.max_over_ranks(job_.rank() == Rank(m[0]) ? double(::sysconf(_SC_NPROCESSORS_ONLN)) : 0);
    s.fan.assign(m.begin(),
                 m.begin() + std::min<long>({long(m.size()), std::max(long(processors), 2l), kPeersMost + 1}));
    return s;
  }

  std::optional<Sample> between_nodes() const {
    if (members_.size() < 2) return std::nullopt;
    // As many pairs at once as there can be; of nodes with as many ranks those that are farthest apart.
    std::size_t last = members_.size() - 1;
    while (members_[last].size() < members_[1].size()) --last;
    const Ranks &a = members_[0], &b = members_[last];
    Sample s{.pairs = {{a[0], b[0]}}};
    for (std::size_t n = members_.size() - 1; n > 0; --n)
      if (n != last) add_pair(s, a[0], members_[n][0]);
    for (std::size_t n = 0; n < members_.size() && n <= kPeersMost; ++n) s.fan.push_back(members_[n][0]);
    const std::size_t both = std::min(a.size(), b.size());
    for (std::size_t i = 0; both > 1 && i < both; ++i) s.at_once.emplace_back(a[i], b[i]);
    return s;
  }

  void add_pair(Sample& s, int a, int b) const {
    if (s.pairs.size() < o_.pairs) s.pairs.emplace_back(a, b);
  }

  // Measures with these ranks while the others sleep. Every rank gets what the first of them has measured.
  template <class F>
  sim::Curve among(const Ranks& ranks, F curve_of) {
    sim::Curve curve;
    {
      const std::unique_ptr<Job> group = job_.part(ranks);
      if (group) curve = curve_of(*group);
    }
    job_.barrier_asleep();
    return shared(std::move(curve), ranks[0]);
  }

  sim::Curve shared(sim::Curve curve, int from) {
    std::vector<double> flat;
    for (const auto& samples : curve.ns) flat.insert(flat.end(), samples.begin(), samples.end());
    job_.share(curve.amounts, Rank(from));
    job_.share(flat, Rank(from));
    const std::size_t rounds = curve.amounts.empty() ? 0 : flat.size() / curve.amounts.size();
    curve.ns.clear();
    for (std::size_t i = 0; i < curve.amounts.size(); ++i)
      curve.ns.emplace_back(flat.begin() + std::ptrdiff_t(i * rounds), flat.begin() + std::ptrdiff_t((i + 1) * rounds));
    return curve;
  }

  sim::PairClass measure(const Sample& s, sim::Carrier by) {
    sim::PairClass c{.by = by, .a = Rank(s.pairs[0].first), .b = Rank(s.pairs[0].second)};
    const auto pair = [&](std::pair<int, int> ranks, const std::vector<double>& bytes, double share) {
      return among({ranks.first, ranks.second},
                   [&](Job& group) { return ping_pong(group, buffers_, bytes, share * seconds_of_share_); });
    };
    c.ping_pong = pair(s.pairs[0], sizes_, kPingPongShare);
    if (!s.at_once.empty()) {
      c.at_once = all_at_once(s.at_once);
      c.pairs_at_once = Rank(s.at_once.size());
    }
    measure_fans(s.fan, c);
    const std::size_t last = sizes_.size() - 1;
    for (std::size_t i = 1; i < s.pairs.size(); ++i) {
      std::vector<std::size_t> at = {0, last / 2, last};
      at.erase(std::unique(at.begin(), at.end()), at.end());
      sim::PairClass::Other other{.a = Rank(s.pairs[i].first), .b = Rank(s.pairs[i].second)};
      for (const std::size_t k : at) other.bytes.push_back(sizes_[k]);
      const sim::Curve curve = pair(s.pairs[i], other.bytes, kOtherShare);
      for (std::size_t k = 0; k < at.size(); ++k)
        other.ratio.push_back(sim::time_of(curve.ns[k]) / sim::time_of(c.ping_pong.ns[at[k]]));
      c.others.push_back(std::move(other));
    }
    return c;
  }

  // Of all pairs at the same time.
  sim::Curve all_at_once(const std::vector<std::pair<int, int>>& pairs) {
    sim::Curve curve;
    {
      Ranks ranks;
      std::unique_ptr<Job> mine;
      for (const auto& [a, b] : pairs) {
        if (std::unique_ptr<Job> group = job_.part({a, b})) mine = std::move(group);
        ranks.push_back(a);
        ranks.push_back(b);
      }
      const std::unique_ptr<Job> all = job_.part(ranks);
      if (mine) curve = ping_pong(*mine, buffers_, sizes_, kAtOnceShare * seconds_of_share_, all.get());
    }
    job_.barrier_asleep();
    return shared(std::move(curve), pairs[0].first);
  }

  void measure_fans(const Ranks& ranks, sim::PairClass& c) {
    Fans f;
    {
      std::vector<std::unique_ptr<Job>> parts;
      std::vector<Job*> groups;
      for (std::size_t peers = 1;; peers = std::min(2 * peers, ranks.size() - 1)) {
        parts.push_back(job_.part(Ranks(ranks.begin(), ranks.begin() + std::ptrdiff_t(peers + 1))));
        groups.push_back(parts.back().get());
        if (peers == ranks.size() - 1) break;
      }
      if (groups.back())
        f = fans(groups, *groups.back(), buffers_, kShortBytes, long_bytes_, kFansShare * seconds_of_share_);
    }
    job_.barrier_asleep();
    c.long_bytes = long_bytes_;
    for (const auto& [to, from] : {std::pair(&c.fan_out, &f.out), std::pair(&c.fan_in, &f.in),
                                   std::pair(&c.fan_out_long, &f.out_long), std::pair(&c.fan_in_long, &f.in_long)}) {
      *to = shared(std::move(*from), ranks[0]);
      to->differences = true;
    }
  }

  // By all ranks of a node at once, as in a collective; by one alone where they share processors.
  void measure_rates(sim::Calibration& c) {
    const Ranks ranks = c.oversubscribed ? Ranks{0} : members_[0];
    c.computing = Rank(ranks.size());
    Rates r;
    {
      const std::unique_ptr<Job> group = job_.part(ranks);
      if (group) r = rates(*group, buffers_, {kRateSizes.begin(), kRateSizes.end()}, kRatesShare * seconds_of_share_);
    }
    job_.barrier_asleep();
    c.combine = shared(std::move(r.combine), ranks[0]);
    c.copy = shared(std::move(r.copy), ranks[0]);
  }

  // Bytes of vectors so long that combining and copying matter compared with a message's fixed time.
  static constexpr std::array<double, 5> kRateSizes = {1 << 16, 1 << 18, 1 << 20, 1 << 22, 1 << 24};

  Job& job_;
  const Options& o_;
  const std::vector<double> sizes_;
  const double long_bytes_;
  Buffers buffers_;
  std::vector<Ranks> members_;  // of each node; those of the most ranks first, of as many that of the lowest
  double seconds_of_share_ = 0;
};

// How the cluster's file names that of the parameters.
std::string name_beside(const fs::path& file, const fs::path& beside) {
  std::error_code error;
  const fs::path folder = beside.has_parent_path() ? beside.parent_path() : ".";
  return fs::proximate(fs::weakly_canonical(file, error), fs::weakly_canonical(folder, error), error).string();
}

// Whether all outputs are written. Where one cannot be, the others are; but no cluster without the set that it names.
bool write_all_of(const Options& o, const sim::Calibration& c, const sim::CalibrationFit& fit, std::size_t columns) {
  const std::string name = json::valid_text(!o.name.empty()   ? o.name
                                            : o.output == "-" ? "calibrated"
                                                              : fs::path(o.output).stem().string());
  const auto text_of = [](const nlohmann::ordered_json& v) {
    return v.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + '\n';
  };
  std::string done;
  bool all = true;
  const auto write = [&](const std::string& to, const nlohmann::ordered_json& document) {
    const bool well = output_written(to, text_of(document), "gccl calibrate");
    if (well) done += (done.empty() ? "" : ", ") + to;
    all &= well;
    return well;
  };
  const bool set = write(o.output, sim::calibrated_parameters(c, fit, name));
  if (!o.cluster_output.empty()) {
    if (set)
      write(o.cluster_output, sim::calibrated_cluster(c, fit, name, name_beside(o.output, o.cluster_output)));
    else
      write_stderr(printable(
          fmt::format("gccl calibrate: {}: not written: it names {}, which is not\n", o.cluster_output, o.output)));
  }
  if (!o.json.empty()) write(o.json, sim::calibration_json(c, fit));
  if (!all)
    write_stderr(printable(
        fmt::format("gccl calibrate: what is written of this calibration: {}\n", done.empty() ? "nothing" : done)));
  if (!all || o.output == "-" || o.json == "-") return all;
  write_stdout(sim::calibration_text(c, fit, columns));
  write_stdout(fmt::format("\n{} is written. GCCL_PARAMETERS={} makes real ranks plan by it.\n", o.output, o.output));
  return true;
}

// Empty where these backends can be measured.
std::string not_measured(const std::string& backends) {
  if (std::find(std::begin(kMeasured), std::end(kMeasured), backends) != std::end(kMeasured)) return {};
  return fmt::format(
      "shared memory, TCP and MPI can be measured, with GCCL_BACKENDS or --backend shm,tcp, shm, tcp or (under mpirun) "
      "mpi; it is \"{}\"",
      backends);
}

// What cannot go well, before minutes are spent; empty where nothing is wrong.
std::string wrong_with(const Job& job, const Options& o) {
  if (job.ranks() < 2)
    return fmt::format(
        "there is one rank, and two at least are needed to measure messages: {} -o PARAMS.json",
        job.backends() == "mpi" ? "mpirun -n 2 gccl calibrate --backend mpi" : "gccl launch -n 2 -- gccl calibrate");
  if (std::string text = not_measured(job.backends()); !text.empty()) return text;
  if (job.rank() != 0) return {};
  try {
    std::vector<fs::path> inputs;
    if (std::string file = read_text(process_environment(), "GCCL_PARAMETERS"); !file.empty())
      inputs.emplace_back(std::move(file));
    check_outputs({o.output, o.cluster_output, o.json}, inputs);
  } catch (const json::InputError& e) {
    return e.what();
  }
  return {};
}

}  // namespace

int run(const GCCL_Config& config, const std::vector<std::string>& args, Parse parse, std::size_t columns,
        std::string* error) {
  std::unique_ptr<Job> met;
  if (const Status s = Job::meet(config, "gccl calibrate", &met); !s.ok()) return *error = s.text(), 2;
  Job& job = *met;
  // Every rank parses the same words and comes to the same end; rank 0 speaks.
  const auto parsed = parse(args);
  const WrongOptions* const wrong = std::get_if<WrongOptions>(&parsed);
  const std::string text = wrong ? wrong->text : wrong_with(job, std::get<Options>(parsed));
  if (!text.empty() && job.rank() == 0) write_stderr(fmt::format("gccl calibrate: {}\n", printable(text)));
  if (job.sum_over_ranks(!text.empty()) > 0) return 2;
  const Options& o = std::get<Options>(parsed);

  const sim::Calibration c = Measurement(job, o).run();
  if (job.rank() != 0) return 0;
  const sim::CalibrationFit fit = sim::fit_calibration(c);
  if (const std::string what = sim::unsupported_bandwidth(fit); !what.empty()) {
    write_stderr(
        fmt::format("gccl calibrate: times of {} do not grow with the size, so they tell no bandwidth; nothing is "
                    "written: measure longer (--seconds), with larger sizes (--max-bytes), or with less other load\n",
                    what));
    return 1;
  }
  try {
    return write_all_of(o, c, fit, columns) ? 0 : 2;
  } catch (const json::InputError& e) {
    write_stderr(fmt::format("gccl calibrate: {}\n", printable(e.what())));
    return 2;
  }
}

}  // namespace gccl::calibrate
