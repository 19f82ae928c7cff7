#include "libgccl/transports/wires.hpp"

#include <dlfcn.h>
#include <fmt/core.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "libgccl/base/log.hpp"
#include "libgccl/transports/shm/shm_backend.hpp"
#include "libgccl/transports/shm/shm_fast_path.hpp"
#include "libgccl/transports/tcp/tcp_backend.hpp"

namespace gccl {
namespace {

constexpr std::uint8_t kNoRoute = 255;

// Those that are part of the library. A new one is a row.
const Transport kTransports[] = {
    {.backend = shm_backend(), .cost_model = "shm", .in_memory = true, .fast_path = shm_fast_path},
    {.backend = tcp_backend(), .cost_model = "tcp"},
};
constexpr std::string_view kNetworkModel = "tcp";  // of transports without a cost model of their own

const Transport* built_in(std::string_view name) {
  for (const Transport& t : kTransports)
    if (name == t.backend->name) return &t;
  return nullptr;
}

std::vector<std::string> split(const std::string& text, char by) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(by, at), text.size());
    if (end > at) parts.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

// Where plug-ins lie: in the user's folders, and in the library's own, which is lib/gccl of an installation and of a
// build folder, or the folder of the plug-in that this code is part of.
std::vector<std::string> plugin_folders() {
  const char* path = std::getenv("GCCL_BACKEND_PATH");
  std::vector<std::string> folders = split(path ? path : "", ':');
  static const char here = 0;
  Dl_info info{};
  if (::dladdr(&here, &info) == 0 || !info.dli_fname) return folders;
  const std::filesystem::path folder = std::filesystem::path(info.dli_fname).parent_path();
  if (folder.filename() == "gccl") {
    folders.push_back(folder);
  } else {
    folders.push_back(folder / "gccl");
    folders.push_back(folder / "lib/gccl");
  }
  return folders;
}

Status load_plugin(const std::string& name, const GCCL_Backend** backend, void** library) {
  const std::string file = fmt::format("libgccl_backend_{}.so", name);
  std::string tried;
  for (const std::string& folder : plugin_folders()) {
    const std::string full = fmt::format("{}/{}", folder, file);
    if (::access(full.c_str(), F_OK) != 0) {
      tried += (tried.empty() ? "" : ", ") + folder;
      continue;
    }
    void* const handle = ::dlopen(full.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle) return Status::error(fmt::format("cannot load backend {}: {}", name, ::dlerror()), GCCL_ERR_SYSTEM);
    const auto entry = reinterpret_cast<GCCL_Backend_entry>(::dlsym(handle, GCCL_BACKEND_ENTRY));
    const GCCL_Backend* const found = entry ? entry() : nullptr;
    if (!found || found->abi != GCCL_BACKEND_ABI) {
      const std::string why =
          !entry   ? "does not export " GCCL_BACKEND_ENTRY
          : !found ? "has no backend to offer"
                   : fmt::format("was built for interface {}, this library has {}", found->abi, GCCL_BACKEND_ABI);
      ::dlclose(handle);  // what it said is gone now
      return Status::error(fmt::format("{} {}", full, why), GCCL_ERR_NOT_SUPPORTED);
    }
    *backend = found;
    *library = handle;
    return {};
  }
  return Status::error(fmt::format("backend \"{}\" is not built in (shm, tcp), and there is no {} in {}; "
                                   "GCCL_BACKEND_PATH may name other folders",
                                   name, file, tried),
                       GCCL_ERR_INVALID_ARGUMENT);
}

// Gathers a status beside the addresses, so that one rank's trouble is everybody's error rather than a hang.
struct Report {
  std::int32_t code;
  std::uint32_t failed_backends;  // bit b: could not connect backend b
  char text[GCCL_BACKEND_TEXT_BYTES];
};

// Another rank's: its text may lack an end, and its code may be none.
std::string text_in(const Report& r) { return {r.text, strnlen(r.text, sizeof r.text)}; }
int code_in(const Report& r) { return is_error(r.code) ? r.code : GCCL_ERR_REMOTE; }

// No backend has failed, and none reaches the rank.
std::string text_of_no_route(const Wires& wires, const GCCL_Port_spec& spec, Rank rank) {
  std::string names;
  for (const Wires::Instance& i : wires.instances())
    names += (names.empty() ? "" : ",") + std::string(i.transport.backend->name);
  const bool near = spec.node[rank] == spec.node[spec.rank];
  return fmt::format(
      "no backend of \"{}\" reaches rank {}{}; check GCCL_BACKENDS, GCCL_ADDRESS{} on both machines", names, rank,
      near ? "" : " on another node: shm serves one node, tcp without GCCL_SECRET listens on loopback alone",
      near ? "" : ", GCCL_HOST");
}

Status gather(Exchange& exchange, const void* mine, std::size_t bytes, std::vector<std::byte>* all,
              std::int64_t timeout_ms) {
  return exchange.all_gather({static_cast<const std::byte*>(mine), bytes}, all, timeout_ms);
}

}  // namespace

Status Wires::open(const Start& start, std::unique_ptr<Wires>* out) {
  std::unique_ptr<Wires> w(new Wires);
  w->environment_ = {.struct_bytes = sizeof(GCCL_Backend_environment),
                     .rank = start.rank,
                     .size = start.size,
                     .host = start.host.c_str(),
                     .secret = start.secret.c_str(),
                     .address = start.address.c_str(),
                     .log = log_line};
  const std::vector<std::string> names = split(start.backends, ',');
  if (names.empty() || names.size() > 8)
    return Status::error(
        fmt::format("GCCL_BACKENDS \"{}\": expected one to eight names such as \"shm,tcp\"", start.backends),
        GCCL_ERR_INVALID_ARGUMENT);
  w->instances_.reserve(names.size());  // what is open has its place, also when memory is short
  for (const std::string& name : names) {
    Instance i{};
    if (const Transport* const t = built_in(name)) {
      i.transport = *t;
    } else if (const Status s = load_plugin(name, &i.transport.backend, &i.library); !s.ok()) {
      return s;
    } else if (name == "mpi") {  // the one plug-in that has a cost model
      i.transport.cost_model = "mpi";
    }
    char text[GCCL_BACKEND_TEXT_BYTES] = "";
    if (const GCCL_Result r = i.transport.backend->open(&w->environment_, &i.state, text); r != GCCL_SUCCESS)
      return Status::error(fmt::format("backend {}: {}", name, text), r);
    w->instances_.push_back(i);
  }
  *out = std::move(w);
  return {};
}

Wires::~Wires() {
  for (const Instance& i : instances_) i.transport.backend->close(i.state);
}

Status Ports::connect(const Wires& wires, const GCCL_Port_spec& spec, Exchange& exchange, std::int64_t timeout_ms,
                      std::unique_ptr<Ports>* out) {
  std::unique_ptr<Ports> p(new Ports);
  const std::size_t backends = wires.instances().size(), each = backends * GCCL_BACKEND_ADDRESS_BYTES;
  std::vector<std::byte> mine(each), all;
  Report report{};
  const auto note = [&report](const char* backend, GCCL_Result r, const char* text) {
    if (report.code == GCCL_SUCCESS) {
      report.code = r;
      // Cut off where it would be anyway: at -O1 g++ warns of it.
      std::snprintf(report.text, sizeof report.text, "backend %s: %.229s", backend, text);
    }
  };
  p->ports_.reserve(backends);  // likewise
  for (std::size_t b = 0; b < backends; ++b) {
    const Wires::Instance& i = wires.instances()[b];
    char text[GCCL_BACKEND_TEXT_BYTES] = "";
    void* state = nullptr;
    const GCCL_Result r =
        i.transport.backend->open_port(i.state, &spec, &state, mine.data() + b * GCCL_BACKEND_ADDRESS_BYTES, text);
    if (r != GCCL_SUCCESS) {
      note(i.transport.backend->name, r, text);
      std::memset(mine.data() + b * GCCL_BACKEND_ADDRESS_BYTES, 0, GCCL_BACKEND_ADDRESS_BYTES);
      report.failed_backends |= 1u << b;
      state = nullptr;
    }
    p->ports_.push_back({i.transport.backend, state, i.transport.in_memory});
  }
  Status s = gather(exchange, mine.data(), each, &all, timeout_ms);
  if (!s.ok()) return s;

  std::vector<std::vector<std::uint8_t>> reaches(backends, std::vector<std::uint8_t>(spec.size, 0));
  std::vector<std::byte> addresses(std::size_t(spec.size) * GCCL_BACKEND_ADDRESS_BYTES);
  for (std::size_t b = 0; b < backends; ++b) {
    Port& port = p->ports_[b];
    if (!port.state) continue;
    for (Rank r = 0; r < spec.size; ++r)
      std::memcpy(addresses.data() + std::size_t(r) * GCCL_BACKEND_ADDRESS_BYTES,
                  all.data() + r * each + b * GCCL_BACKEND_ADDRESS_BYTES, GCCL_BACKEND_ADDRESS_BYTES);
    char text[GCCL_BACKEND_TEXT_BYTES] = "";
    if (const GCCL_Result r = port.backend->connect_port(port.state, &spec, addresses.data(), reaches[b].data(), text);
        r != GCCL_SUCCESS) {
      note(port.backend->name, r, text);
      report.failed_backends |= 1u << b;
      reaches[b].assign(spec.size, 0);
    }
  }
  s = gather(exchange, &report, sizeof report, &all, timeout_ms);
  if (!s.ok()) return s;

  const auto report_of = [&all](Rank r) {
    Report x;
    std::memcpy(&x, all.data() + r * sizeof x, sizeof x);
    x.text[sizeof x.text - 1] = 0;
    return x;
  };
  p->route_.assign(spec.size, kNoRoute);
  Status unreached;
  for (Rank r = 0; r < spec.size && unreached.ok(); ++r) {
    if (r == spec.rank) continue;
    const Report theirs = report_of(r);
    const std::uint32_t failed = theirs.failed_backends | report.failed_backends;
    for (std::size_t b = 0; b < backends && p->route_[r] == kNoRoute; ++b)
      if (reaches[b][r] && !(failed >> b & 1)) p->route_[r] = std::uint8_t(b);
    if (p->route_[r] != kNoRoute) {
      ++p->ports_[p->route_[r]].peers;
      continue;
    }
    unreached = report.code   ? Status::error(report.text, report.code)
                : theirs.code ? Status::error(fmt::format("rank {}: {}", r, text_in(theirs)), code_in(theirs))
                              : Status::error(text_of_no_route(wires, spec, r), GCCL_ERR_SYSTEM);
  }
  // All agree whether it worked, and nobody's names are needed any more.
  report = {.code = unreached.code(), .failed_backends = 0, .text = {}};
  std::snprintf(report.text, sizeof report.text, "%s", unreached.text().c_str());
  s = gather(exchange, &report, sizeof report, &all, timeout_ms);
  if (!s.ok()) return s;
  if (!unreached.ok()) return unreached;
  for (Rank r = 0; r < spec.size; ++r)
    if (const Report theirs = report_of(r); theirs.code)
      return Status::error(fmt::format("rank {}: {}", r, text_in(theirs)), code_in(theirs));
  for (Port& port : p->ports_)
    if (port.state) port.backend->port_connected(port.state);
  p->look_at_routes(wires, spec.size);
  *out = std::move(p);
  return {};
}

// What follows from who reaches whom.
void Ports::look_at_routes(const Wires& wires, Rank size) {
  if (size == 1) fast_path_ = kTransports[0].fast_path(nullptr);  // without messages any will do
  for (std::size_t b = 0; b < ports_.size(); ++b) {
    const Transport& t = wires.instances()[b].transport;
    if (!ports_[b].state || ports_[b].peers != size - 1) continue;
    if (t.in_memory) {
      in_memory_ = true;
      cost_model_ = t.cost_model;
    }
    if (t.fast_path) fast_path_ = t.fast_path(ports_[b].state);
  }
  // Over a network some ranks may reach all others by one transport where others need two: the list of transports,
  // which is the same on every rank, decides.
  for (const Wires::Instance& i : wires.instances())
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
