#include "libgccl/communicator/record/dump.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string_view>

#include "libgccl/json/pickle.hpp"
#include "libgccl/json/reader.hpp"
#include "libgccl/json/writer.hpp"

namespace gccl {
namespace {

using json::Writer;

std::string version_text() {
  return fmt::format("{}.{}.{}", GCCL_VERSION_MAJOR, GCCL_VERSION_MINOR, GCCL_VERSION_PATCH);
}
std::string id_text(std::uint64_t id) { return fmt::format("{:016x}", id); }

// ---- GCCL's own form: keys in order, as the library's other documents have them ----

void own_form(Writer& w, const DumpedCall& c, const std::vector<Rank>& world_rank, bool transfer) {
  w.object([&] {
    if (!c.algorithm.empty()) w.member("algorithm", c.algorithm);
    if (c.began_ns) w.member("began_ns", c.began_ns);
    w.member("call", c.name);
    w.member("count", c.count);
    if (!c.dtype.empty()) w.member("dtype", c.dtype);
    if (c.ended_ns) w.member("ended_ns", c.ended_ns);
    if (!c.own) w.member("internal", true);
    if (c.lengths) w.member("lengths", id_text(c.lengths));
    if (transfer) w.member("number", c.number);
    if (!c.op.empty()) w.member("op", c.op);
    w.member(transfer ? "peer" : "root", c.root);
    if (!transfer) w.member("sequence", c.sequence);
    w.member("state", c.state);
    w.member("text", c.text);
    if (c.state != std::string_view("completed")) w.member("waits", c.waits);
    if (c.waits_what.empty()) return;
    w.key("waits_for");
    w.object([&] {
      w.member("rank", c.waits_for);
      w.member("what", c.waits_what);
      w.member("world_rank", world_rank[c.waits_for]);
    });
  });
}

void own_form(Writer& w, const DumpedCommunicator& c) {
  w.object([&] {
    w.key("calls");
    w.array([&] {
      for (const DumpedCall& call : c.calls) own_form(w, call, c.world_rank, false);
    });
    if (!c.failure.empty()) {
      w.member("failure", json::valid_text(c.failure));
      w.member("failure_code", c.failure_code);
      w.member("failure_rank", c.world_rank[c.failure_rank]);
      if (c.failure_ranks.size() > 1) {
        w.key("failure_ranks");
        w.array([&] {
          for (const Rank r : c.failure_ranks) w.value(r);
        });
      }
      w.member("failure_unpolled_ns", c.failure_unpolled_ns);
    }
    w.member("id", id_text(c.id));
    w.key("messages");
    w.array([&] {
      for (const DumpedCommunicator::Messages& m : c.messages)
        w.object([&] {
          w.member("peer", m.peer);
          w.member("received", m.received);
          w.member("sent", m.sent);
        });
    });
    w.member("rank", c.rank);
    w.key("ranks");
    w.array([&] {
      for (const Rank r : c.world_rank) w.value(r);
    });
    w.key("transfers");
    w.array([&] {
      for (const DumpedCall& call : c.transfers) own_form(w, call, c.world_rank, true);
    });
    w.member("world", c.world);
  });
}

void own_form(Writer& w, const DumpedRank& d) {
  w.object([&] {
    w.key("communicators");
    w.array([&] {
      for (const DumpedCommunicator& c : d.communicators) own_form(w, c);
    });
    w.member("host", json::valid_text(d.host));
    w.member("pid", ::getpid());
    w.member("rank", d.rank);
    w.member("reason", json::valid_text(d.reason));
    w.member("schema", "gccl/dump/1");
    w.member("size", d.size);
    if (!d.skipped) {
      w.key("skipped");
      w.null();
    } else if (*d.skipped > 0) {
      w.member("skipped", *d.skipped);
    }
    w.member("version", version_text());
    w.member("world", id_text(d.world));
    w.member("written_ns", d.written_ns);
  });
}

// ---- PyTorch's ----

// As its analyser knows the calls, and how many blocks go in and come out on a rank. It takes all blocks of a call for
// equally long, so those that are not have their mean length, rounded up.
struct TorchCall {
  std::string_view ours, theirs;
  bool in_all, out_all;  // as many blocks as ranks
};
constexpr TorchCall kTorchCalls[] = {
    {"allreduce", "all_reduce", false, false},
    {"allgather", "_all_gather_base", false, true},
    {"reduce_scatter", "_reduce_scatter_base", true, false},
    {"broadcast", "broadcast", false, false},
    {"reduce", "reduce", false, false},
    {"gather", "gather", false, true},
    {"scatter", "scatter", true, false},
    {"alltoall", "all_to_all", true, true},
    {"alltoallv", "all_to_all", false, false},
    {"allgatherv", "all_gather", false, true},
    {"reduce_scatterv", "reduce_scatter", true, false},
};
const char* torch_name(const DumpedCommunicator& c) { return c.world ? "default_pg" : "undefined"; }
constexpr std::string_view kTorchTypes[][2] = {{"f32", "Float"},     {"f64", "Double"}, {"f16", "Half"},
                                               {"bf16", "BFloat16"}, {"i8", "Char"},    {"u8", "Byte"},
                                               {"i32", "Int"},       {"i64", "Long"},   {"i16", "Short"}};

void list_of(Writer& w, std::string_view name, const auto& only) {
  w.key(name);
  w.array([&] { w.value(only); });
}

void sizes_of(Writer& w, std::string_view name, std::uint64_t only) {
  w.key(name);
  w.array([&] { w.array([&] { w.value(only); }); });
}

// Null where it is not known.
void time_of(Writer& w, std::string_view name, std::int64_t ns) {
  w.key(name);
  ns ? w.value(ns) : w.null();
}

void torch_entry(Writer& w, const DumpedCommunicator& c, const DumpedCall& call, std::size_t record, bool transfer) {
  std::string name = "all_reduce_barrier";
  const std::uint64_t n = c.world_rank.size();
  const std::uint64_t block = call.lengths ? (call.count + n - 1) / n : call.count;
  std::uint64_t in = block, out = block;
  const bool sends = call.name == "send";
  if (transfer) {
    name = sends ? fmt::format("send {}->{}", c.rank, call.root) : fmt::format("recv {}<-{}", c.rank, call.root);
  } else {
    for (const TorchCall& t : kTorchCalls) {
      if (t.ours != call.name) continue;
      name = t.theirs;
      in *= t.in_all ? n : 1;
      out *= t.out_all ? n : 1;
    }
  }
  std::string type = call.dtype;
  for (const auto& [ours, theirs] : kTorchTypes)
    if (call.dtype == ours) type = theirs;
  const std::string_view state = call.state;
  w.object([&] {
    w.member("record_id", record);
    w.member("pg_id", 0);
    w.key("process_group");
    w.array([&] {
      w.value(id_text(c.id));
      w.value(torch_name(c));
    });
    w.member("collective_seq_id", transfer ? 0 : call.sequence);
    w.member("p2p_seq_id", 0);
    w.member("op_id", record);
    w.member("profiling_name", "nccl:" + name);
    w.member("time_created_ns", call.began_ns);
    w.key("duration_ms");
    call.ended_ns ? w.value(double(call.ended_ns - call.began_ns) * 1e-6) : w.null();
    sizes_of(w, "input_sizes", in);
    list_of(w, "input_dtypes", type);
    sizes_of(w, "output_sizes", out);
    list_of(w, "output_dtypes", type);
    w.member("state", state);
    time_of(w, "time_discovered_started_ns", state == "scheduled" ? 0 : call.began_ns);
    time_of(w, "time_discovered_completed_ns", call.ended_ns);
    w.member("retired", state == "completed");
    w.member("timeout_ms", 0);
    w.member("is_p2p", transfer);
    w.key("frames");
    w.array([] {});
  });
}

void torch_entries(Writer& w, const DumpedRank& d) {
  std::size_t record = 0;
  for (const DumpedCommunicator& c : d.communicators) {
    std::int64_t before_ns = 0;
    for (DumpedCall call : c.calls) {
      if (call.began_ns == 0) call.began_ns = before_ns;  // there it is a number always: not before this
      before_ns = call.began_ns;
      torch_entry(w, c, call, record++, false);
    }
    for (const DumpedCall& call : c.transfers) torch_entry(w, c, call, record++, true);
  }
}

void torch_group(Writer& w, const DumpedCommunicator& c) {
  std::string ranks;
  for (const Rank r : c.world_rank) ranks += fmt::format("{}{}", ranks.empty() ? "[" : ", ", r);
  w.object([&] {
    w.member("name", id_text(c.id));
    w.member("desc", torch_name(c));
    w.member("ranks", ranks + "]");
  });
}

void torch_status(Writer& w, const DumpedCommunicator& c) {
  std::int64_t enqueued = -1, started = -1, completed = -1;
  for (const DumpedCall& call : c.calls) {
    const std::string_view state = call.state;
    enqueued = call.sequence;
    if (state != "scheduled") started = call.sequence;
    if (state == "completed") completed = call.sequence;
  }
  w.object([&] {
    w.member("last_enqueued_collective", enqueued);
    w.member("last_started_collective", started);
    w.member("last_completed_collective", completed);
  });
}

void torch_form(Writer& w, const DumpedRank& d) {
  const auto of_each = [&](std::string_view name, auto write) {
    w.key(name);
    w.object([&] {
      for (const DumpedCommunicator& c : d.communicators) {
        w.key(id_text(c.id));
        write(w, c);
      }
    });
  };
  w.object([&] {
    w.member("version", "2.10");
    of_each("pg_config", torch_group);
    of_each("pg_status", torch_status);
    w.member("comm_lib_version", "gccl " + version_text());
    w.key("entries");
    w.array([&] { torch_entries(w, d); });
    // Its entries have no place for an operation, a root and who waits for whom. PyTorch's analyser passes over keys
    // that it does not know.
    w.key("gccl");
    own_form(w, d);
  });
}

std::string text_of(const DumpedRank& d, bool as_json) {
  std::string text;
  if (as_json) {
    json::JsonWriter w(&text);
    own_form(w, d);
    text += '\n';
  } else {
    json::PickleWriter w(&text);
    torch_form(w, d);
    w.end();
  }
  return text;
}

std::atomic<std::uint32_t> asked{0};

// PREFIX* does not match it: a rank that is killed while it writes leaves one. Of a long name it has the end, where
// ranks differ, from a whole character of UTF-8 on: what is added to the name would be more than a file system takes.
std::string draft_of(const std::string& path) {
  constexpr std::size_t kNameBytes = 64;
  static std::atomic<unsigned> drafts{0};        // each has its own: two threads may write at the same time
  const std::size_t name = path.rfind('/') + 1;  // npos + 1 is 0
  std::size_t kept = std::max(name, path.size() - std::min(path.size(), kNameBytes));
  while (kept > name && kept < path.size() && (path[kept] & 0xc0) == 0x80) ++kept;
  return fmt::format("{}.{}.{}.{}.draft", path.substr(0, name), path.substr(kept), ::getpid(), drafts++);
}

}  // namespace

Status write_dump(const DumpedRank& rank, const std::string& path) {
  const std::string text = text_of(rank, path.ends_with(".json"));
  std::error_code none;
  // A device or a pipe is written to, and never replaced; so is what a link leads to, as /dev/stdout.
  const bool in_place = std::filesystem::is_other(path, none) || std::filesystem::is_symlink(path, none);
  const std::string draft = in_place ? path : draft_of(path);
  const auto wrong = [&](int error) {
    if (!in_place) ::unlink(draft.c_str());
    return Status::error(fmt::format("cannot write the dump {}: {}", path, std::strerror(error)), GCCL_ERR_SYSTEM);
  };
  // A named pipe that nobody reads is an error at once.
  const int fd = ::open(draft.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NONBLOCK, 0666);
  if (fd < 0) return wrong(errno);
  ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) & ~O_NONBLOCK);
  std::FILE* const file = ::fdopen(fd, "w");
  if (!file) {
    const int error = errno;
    ::close(fd);
    return wrong(error);
  }
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  const int error = errno;
  if (std::fclose(file) != 0 || !written) return wrong(written ? errno : error);
  return in_place || std::rename(draft.c_str(), path.c_str()) == 0 ? Status() : wrong(errno);
}

Status read_dump_settings(const Environment& environment, DumpSettings* out) {
  out->prefix = read_text(environment, "GCCL_DUMP");
  out->json = read_text(environment, "GCCL_DUMP_FORMAT") == "json";
  // It is an error now, as what a failure leaves is lost when there is no place for it then.
  const std::string folder = std::filesystem::path(out->prefix).parent_path();
  std::error_code none;
  if (!folder.empty() && !std::filesystem::is_directory(folder, none))
    return invalid(
        fmt::format("GCCL_DUMP is \"{}\", expected the beginning of a file's name in a folder that exists: {} is none",
                    out->prefix, folder));
  const std::string signal = read_text(environment, "GCCL_DUMP_SIGNAL");
  if (signal.empty()) return {};
  if (out->prefix.empty()) return invalid("GCCL_DUMP_SIGNAL needs GCCL_DUMP, which says where dumps go");
  struct sigaction act {};
  act.sa_handler = [](int) { asked.fetch_add(1, std::memory_order_relaxed); };
  act.sa_flags = SA_RESTART;
  ::sigaction(signal == "USR1" ? SIGUSR1 : SIGUSR2, &act, nullptr);
  return {};
}

std::string dump_file(const DumpSettings& settings, Rank rank) {
  return fmt::format("{}{}{}", settings.prefix, rank, settings.json ? ".json" : "");
}

std::uint32_t dumps_asked() { return asked.load(std::memory_order_relaxed); }

}  // namespace gccl
