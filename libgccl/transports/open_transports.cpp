#include "libgccl/transports/open_transports.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cassert>
#include <cstdio>
#include <cstring>

#include "libgccl/base/log.hpp"
#include "libgccl/base/split_text.hpp"
#include "libgccl/cluster/read/transport_model.hpp"
#include "libgccl/transports/plugin.hpp"
#include "libgccl/transports/shm/shm_backend.hpp"
#include "libgccl/transports/shm/shm_fast_path.hpp"
#include "libgccl/transports/tcp/tcp_backend.hpp"

namespace gccl {
namespace {

constexpr std::uint8_t kNoRoute = 255;

// Those that are part of the library. A new one is a row.
const Transport kTransports[] = {
    {.backend = shm_backend(),
     .cost_model = "shm",
     .in_memory = true,
     .moved_bytes = shm_moved_bytes,
     .staging = shm_staging,
     .fast_path = shm_fast_path},
    {.backend = tcp_backend(),
     .cost_model = "tcp",
     .serves_alone = tcp_serves_alone,
     .moved_bytes = tcp_moved_bytes,
     .link_counts = tcp_link_counts,
     .take_arrivals = tcp_take_arrivals,
     .take_leave = tcp_take_leave,
     .close_alone = tcp_close_alone},
};
constexpr std::string_view kNetworkModel = "tcp";  // of transports without a cost model of their own

const Transport* built_in(std::string_view name) {
  for (const Transport& t : kTransports)
    if (name == t.backend->name) return &t;
  return nullptr;
}
std::string built_in_names() {
  std::string names;
  for (const Transport& t : kTransports) names += fmt::format("{}{}", names.empty() ? "" : ", ", t.backend->name);
  return names;
}

// Gathers a status together with the addresses, so that one rank's failure is every rank's error rather than a hang.
struct Report {
  std::int32_t code;
  std::uint32_t failed_backends;  // bit b: could not connect backend b
  std::uint32_t oversubscribed;   // 1: more ranks than processors
  char text[GCCL_BACKEND_TEXT_BYTES];
};

// Another rank's: its text may lack an end, and its code may be none.
std::string text_in(const Report& r) { return {r.text, strnlen(r.text, sizeof r.text)}; }
int code_in(const Report& r) { return is_error(r.code) ? r.code : GCCL_ERR_REMOTE; }

// No backend has failed, and none reaches the rank.
std::string text_of_no_route(const OpenTransports& transports, const GCCL_Port_spec& spec, Rank rank) {
  std::string names;
  for (const OpenTransports::Instance& i : transports.instances())
    names += fmt::format("{}{}", names.empty() ? "" : ",", i.transport.backend->name);
  const bool near = spec.node[rank] == spec.node[spec.rank];
  const auto text = [&](std::string_view where, std::string_view host) {
    return fmt::format("no backend of \"{}\" reaches rank {}{}; check GCCL_BACKENDS, GCCL_ADDRESS{} on both machines",
                       names, rank, where, host);
  };
  if (near) return text("", "");
  std::string far = " on another node: shm serves one node";
  const std::string_view at = transports.environment().address;
  if (!*transports.environment().secret)
    far += ", tcp without GCCL_SECRET listens on loopback alone";
  else if (names.find("tcp") != names.npos && (at.starts_with("127.") || at == "::1" || at == "localhost"))
    far += fmt::format(", tcp here listens on GCCL_ADDRESS={} alone", at);
  return text(far, ", GCCL_HOST");
}

}  // namespace

Status OpenTransports::open(const Bootstrap& bootstrap, std::unique_ptr<OpenTransports>* out) {
  std::unique_ptr<OpenTransports> w(new OpenTransports);
  w->environment_ = {.struct_bytes = sizeof(GCCL_Backend_environment),
                     .rank = bootstrap.rank,
                     .size = bootstrap.size,
                     .host = bootstrap.host.c_str(),
                     .secret = bootstrap.secret.c_str(),
                     .address = bootstrap.address.c_str(),
                     .log = log_line,
                     .progress_thread = bootstrap.progress_thread};
  const std::vector<std::string> names = split_text(bootstrap.backends, ',');
  if (names.empty() || names.size() > 8)
    return Status::error(
        fmt::format("GCCL_BACKENDS \"{}\": expected one to eight names such as \"shm,tcp\"", bootstrap.backends),
        GCCL_ERR_INVALID_ARGUMENT);
  w->instances_.reserve(names.size());  // what is open has its place, also when memory is short
  for (const std::string& name : names) {
    Instance i{};
    if (const Transport* const t = built_in(name)) {
      i.transport = *t;
    } else if (const Status s = load_plugin(name, built_in_names(), &i.transport.backend, &i.library); !s.ok()) {
      return s;
    } else if (const auto m = transport_models().find(name); m != transport_models().end()) {
      i.transport.cost_model = m->first;  // a plug-in of which the planner knows more than that it is a network
    }
    char text[GCCL_BACKEND_TEXT_BYTES] = "";
    if (const GCCL_Result r = i.transport.backend->open(&w->environment_, &i.state, text); r != GCCL_SUCCESS)
      return Status::error(fmt::format("backend {}: {}", name, text), r);
    w->instances_.push_back(i);
    if (names.size() == 1 && i.transport.serves_alone) i.transport.serves_alone(i.state);
  }
  *out = std::move(w);
  return {};
}

OpenTransports::~OpenTransports() {
  for (const Instance& i : instances_) i.transport.backend->close(i.state);
}

// What one of them says in each of three exchanges, and makes of what the other ranks say there.
class Ports::Connecting {
 public:
  Connecting(const OpenTransports& transports, const GCCL_Port_spec& spec);
  Connecting(Connecting&&) = default;
  // For the next exchange.
  std::span<const std::byte> said() const { return said_; }
  void take_addresses(const std::vector<std::byte>& all);
  void take_reports(const std::vector<std::byte>& all);
  Status take_ends(const std::vector<std::byte>& all) const;
  std::unique_ptr<Ports> take();

 private:
  void note(const char* backend, GCCL_Result r, const char* text);
  void say_report() {
    const auto* const at = reinterpret_cast<const std::byte*>(&report_);
    said_.assign(at, at + sizeof report_);
  }
  static Report report_in(const std::vector<std::byte>& all, Rank r) {
    Report x;
    std::memcpy(&x, all.data() + r * sizeof x, sizeof x);
    x.text[sizeof x.text - 1] = 0;
    return x;
  }

  const OpenTransports& transports_;
  const GCCL_Port_spec spec_;
  const std::size_t backends_;
  std::unique_ptr<Ports> ports_;
  std::vector<std::byte> said_;
  std::vector<std::vector<std::uint8_t>> reaches_;  // by backend and rank
  Report report_{};
  Status unreached_;
};

void Ports::Connecting::note(const char* backend, GCCL_Result r, const char* text) {
  if (report_.code != GCCL_SUCCESS) return;
  report_.code = r;
  // Cut off where it would be anyway: at -O1 g++ warns of it.
  std::snprintf(report_.text, sizeof report_.text, "backend %s: %.229s", backend, text);
}

Ports::Connecting::Connecting(const OpenTransports& transports, const GCCL_Port_spec& spec)
    : transports_(transports), spec_(spec), backends_(transports.instances().size()), ports_(new Ports) {
  report_.oversubscribed = transports.oversubscribed;
  said_.resize(backends_ * GCCL_BACKEND_ADDRESS_BYTES);
  ports_->ports_.reserve(backends_);  // likewise
  for (std::size_t b = 0; b < backends_; ++b) {
    const OpenTransports::Instance& i = transports.instances()[b];
    std::byte* const address = said_.data() + b * GCCL_BACKEND_ADDRESS_BYTES;
    char text[GCCL_BACKEND_TEXT_BYTES] = "";
    void* state = nullptr;
    if (const GCCL_Result r = i.transport.backend->open_port(i.state, &spec_, &state, address, text);
        r != GCCL_SUCCESS) {
      note(i.transport.backend->name, r, text);
      std::memset(address, 0, GCCL_BACKEND_ADDRESS_BYTES);
      report_.failed_backends |= 1u << b;
      state = nullptr;
    }
    ports_->ports_.emplace_back(i.transport, state);
  }
}

void Ports::Connecting::take_addresses(const std::vector<std::byte>& all) {
  const std::size_t each = backends_ * GCCL_BACKEND_ADDRESS_BYTES;
  assert(all.size() == spec_.size * each);
  reaches_.assign(backends_, std::vector<std::uint8_t>(spec_.size, 0));
  std::vector<std::byte> addresses(std::size_t(spec_.size) * GCCL_BACKEND_ADDRESS_BYTES);
  for (std::size_t b = 0; b < backends_; ++b) {
    Port& port = ports_->ports_[b];
    if (!port.state) continue;
    for (Rank r = 0; r < spec_.size; ++r)
      std::memcpy(addresses.data() + std::size_t(r) * GCCL_BACKEND_ADDRESS_BYTES,
                  all.data() + r * each + b * GCCL_BACKEND_ADDRESS_BYTES, GCCL_BACKEND_ADDRESS_BYTES);
    char text[GCCL_BACKEND_TEXT_BYTES] = "";
    if (const GCCL_Result r =
            port.backend->connect_port(port.state, &spec_, addresses.data(), reaches_[b].data(), text);
        r != GCCL_SUCCESS) {
      note(port.backend->name, r, text);
      report_.failed_backends |= 1u << b;
      reaches_[b].assign(spec_.size, 0);
    }
  }
  say_report();
}

void Ports::Connecting::take_reports(const std::vector<std::byte>& all) {
  assert(all.size() == spec_.size * sizeof(Report));
  std::vector<std::uint8_t>& route = ports_->route_;
  route.assign(spec_.size, kNoRoute);
  for (Rank r = 0; r < spec_.size; ++r)
    ports_->oversubscribed_ = ports_->oversubscribed_ || report_in(all, r).oversubscribed != 0;
  for (Rank r = 0; r < spec_.size && unreached_.ok(); ++r) {
    if (r == spec_.rank) continue;
    const Report theirs = report_in(all, r);
    const std::uint32_t failed = theirs.failed_backends | report_.failed_backends;
    for (std::size_t b = 0; b < backends_ && route[r] == kNoRoute; ++b)
      if (reaches_[b][r] && !(failed >> b & 1)) route[r] = std::uint8_t(b);
    if (route[r] != kNoRoute) {
      ++ports_->ports_[route[r]].peers;
      continue;
    }
    unreached_ = report_.code  ? Status::error(report_.text, report_.code)
                 : theirs.code ? Status::error(fmt::format("rank {}: {}", r, text_in(theirs)), code_in(theirs))
                               : Status::error(text_of_no_route(transports_, spec_, r), GCCL_ERR_SYSTEM);
  }
  if (report_.code && unreached_.ok() && spec_.size > 1)
    log_line(kLogWarnings, fmt::format("rank {}: {}; other backends do its work", spec_.rank, text_in(report_)));
  // All agree whether it worked, and nobody's names are needed any more.
  report_ = {.code = unreached_.code(), .failed_backends = 0, .oversubscribed = 0, .text = {}};
  std::snprintf(report_.text, sizeof report_.text, "%s", unreached_.text().c_str());
  say_report();
}

Status Ports::Connecting::take_ends(const std::vector<std::byte>& all) const {
  assert(all.size() == spec_.size * sizeof(Report));
  if (!unreached_.ok()) return unreached_;
  for (Rank r = 0; r < spec_.size; ++r)
    if (const Report theirs = report_in(all, r); theirs.code)
      return Status::error(fmt::format("rank {}: {}", r, text_in(theirs)), code_in(theirs));
  return {};
}

std::unique_ptr<Ports> Ports::Connecting::take() {
  for (Port& port : ports_->ports_)
    if (port.state) port.backend->port_connected(port.state);
  ports_->set_by_routes(transports_, spec_.size);
  return std::move(ports_);
}

Status Ports::connect(const OpenTransports& transports, std::span<const GCCL_Port_spec> specs, Exchange& exchange,
                      std::int64_t timeout_ms, std::unique_ptr<Ports>* out) {
  std::vector<Connecting> parts;
  parts.reserve(specs.size());
  for (const GCCL_Port_spec& spec : specs) parts.emplace_back(transports, spec);
  // What all parts of all ranks say, by part.
  std::vector<std::vector<std::byte>> gathered(parts.size());
  const auto gather = [&] {
    std::vector<std::byte> mine, all;
    for (const Connecting& p : parts) mine.insert(mine.end(), p.said().begin(), p.said().end());
    if (const Status s = exchange.all_gather(mine, &all, timeout_ms); !s.ok()) return s;
    for (auto& h : gathered) h.clear();
    for (auto at = all.begin(); at != all.end();)
      for (std::size_t i = 0; i < parts.size(); ++i) {
        const auto end = at + std::ptrdiff_t(parts[i].said().size());
        gathered[i].insert(gathered[i].end(), at, end);
        at = end;
      }
    return Status();
  };
  if (Status s = gather(); !s.ok()) return s;
  for (std::size_t i = 0; i < parts.size(); ++i) parts[i].take_addresses(gathered[i]);
  if (Status s = gather(); !s.ok()) return s;
  for (std::size_t i = 0; i < parts.size(); ++i) parts[i].take_reports(gathered[i]);
  if (Status s = gather(); !s.ok()) return s;
  for (std::size_t i = 0; i < parts.size(); ++i)
    if (Status s = parts[i].take_ends(gathered[i]); !s.ok()) return s;
  for (std::size_t i = 0; i < parts.size(); ++i) out[i] = parts[i].take();
  return {};
}

// What follows from which transport reaches which rank.
void Ports::set_by_routes(const OpenTransports& transports, Rank size) {
  if (size == 1) {  // without messages any will do
    const auto* const fast = std::ranges::find_if(kTransports, [](const Transport& t) { return t.fast_path; });
    if (fast != std::end(kTransports)) fast_path_ = fast->fast_path(nullptr);
  }
  for (std::size_t b = 0; b < ports_.size(); ++b) {
    const Transport& t = transports.instances()[b].transport;
    if (!ports_[b].state || ports_[b].peers != size - 1) continue;
    if (t.in_memory) {
      in_memory_ = true;
      cost_model_ = t.cost_model;
    }
    if (t.fast_path) fast_path_ = t.fast_path(ports_[b].state);
  }
  // Over a network some ranks may reach all others by one transport where others need two: the list of transports,
  // which is the same on every rank, decides.
  for (const OpenTransports::Instance& i : transports.instances())
    if (cost_model_.empty() && !i.transport.in_memory) cost_model_ = i.transport.cost_model;
  if (cost_model_.empty()) cost_model_ = kNetworkModel;
}

std::size_t Ports::report_bytes() { return sizeof(Report); }

Ports::~Ports() {
  fast_path_.reset();
  for (Port& port : ports_)
    if (port.state) port.backend->close_port(port.state);
}

}  // namespace gccl
