#include "libgccl/bootstrap/settings.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <string_view>
#include <vector>

#include "libgccl/bootstrap/secret.hpp"
#include "libgccl/net/socket.hpp"

namespace gccl {
namespace {

constexpr std::int64_t kMsMax = std::int64_t(1000) * 86400 * 365;
constexpr std::int64_t kDetectionMsMin = 200;
constexpr std::size_t kHostBytesMax = 240;  // fits what ranks exchange about themselves

// A text of the configuration or the environment, and where it is from.
struct Text {
  std::string value, name;
};
Text text_of(const char* configured, const char* field, const Environment& environment, const char* variable) {
  if (configured) return {configured, fmt::format("GCCL_Config.{}", field)};
  const char* value = environment(variable);
  return {value ? value : "", variable};
}

Status read_secret(const GCCL_Config& config, const Environment& environment, std::string* secret) {
  if (config.secret) {
    *secret = config.secret;  // "" is a decision for none
    return {};
  }
  if (const char* value = environment("GCCL_SECRET")) {
    *secret = value;
    return {};
  }
  const char* path = environment("GCCL_SECRET_FILE");
  if (!path) return {};
  const Status s = read_secret_file(path, secret);
  return s.ok() ? s : Status::error(fmt::format("GCCL_SECRET_FILE: {}", s.text()), s.code());
}

Status check_backends(const Text& backends) {
  std::vector<std::string_view> names;
  for (std::string_view rest = backends.value; !rest.empty() || names.empty();) {
    const std::size_t comma = rest.find(',');
    const std::string_view name = rest.substr(0, comma);
    const bool plain = !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
    });
    if (!plain || std::count(names.begin(), names.end(), name) || (comma != rest.npos && comma + 1 == rest.size()))
      return invalid(fmt::format(
          "{} is \"{}\", expected different names of backends with commas between them, such as \"shm,tcp\"",
          backends.name, backends.value));
    names.push_back(name);
    rest = comma == rest.npos ? std::string_view() : rest.substr(comma + 1);
  }
  return {};
}

// A limit of the configuration (-2: not given) or of a variable; "-1" is none, and more than a year a year.
Status read_timeout(std::int64_t configured, const Environment& environment, std::int64_t* out) {
  const char* text = environment("GCCL_TIMEOUT_MS");
  if (configured == -2 && !text) return {};
  const std::string name = configured == -2 ? "GCCL_TIMEOUT_MS" : "GCCL_Config.timeout_ms";
  const std::string value = configured == -2 ? text : std::to_string(configured);
  if (!parse_number(name, value, -1, std::numeric_limits<std::int64_t>::max(), out).ok() || *out == 0)
    return invalid(fmt::format("{} is \"{}\", expected milliseconds from 1 on, or -1 for no limit", name, value));
  *out = std::min(*out, kMsMax);
  return {};
}

}  // namespace

Status read_settings(const GCCL_Config& config, const Environment& given, Settings* out) {
  *out = {};
  const Environment environment = without_empty(given);
  const Text store = text_of(config.store, "store", environment, "GCCL_STORE");
  out->store = store.value;
  if (out->store.empty() && config.store)
    return invalid(fmt::format("{} is empty, expected \"tcp://HOST:PORT\" or \"file:///PATH\"", store.name));

  if (Status s = read_secret(config, environment, &out->secret); !s.ok()) return s;
  out->can_meet = true;

  const Text host = text_of(config.host, "host", environment, "GCCL_HOST");
  out->host = host.value;
  if (out->host.size() > kHostBytesMax)
    return invalid(
        fmt::format("{} has {} characters, expected at most {}", host.name, out->host.size(), kHostBytesMax));

  const Text address = text_of(config.address, "address", environment, "GCCL_ADDRESS");
  out->address = address.value;
  if (!out->address.empty()) {
    ListeningPlace ignored;
    if (Status s = listening_place(out->address, !out->secret.empty(), &ignored); !s.ok())
      return invalid(fmt::format("{}: {}", address.name, s.text()));
  }

  Text backends = text_of(config.backends, "backends", environment, "GCCL_BACKENDS");
  if (!config.backends && !environment("GCCL_BACKENDS")) backends.value = "shm,tcp";
  if (Status s = check_backends(backends); !s.ok()) return s;
  out->backends = backends.value;

  if (Status s = read_timeout(config.timeout_ms, environment, &out->timeout_ms); !s.ok()) return s;
  bool found = false;
  if (Status s = read_number(environment, "GCCL_START_TIMEOUT_MS", 1, kMsMax, &out->start_timeout_ms, &found); !s.ok())
    return s;
  if (Status s = read_number(environment, "GCCL_JOIN_TIMEOUT_MS", -1, kMsMax, &out->join_timeout_ms, &found); !s.ok())
    return s;
  if (out->join_timeout_ms == 0)
    return invalid("GCCL_JOIN_TIMEOUT_MS is 0, expected milliseconds from 1 on, or -1 for no limit");
  if (Status s = read_number(environment, "GCCL_REPLACE_WAIT_MS", 0, kMsMax, &out->replace_wait_ms, &found); !s.ok())
    return s;
  if (Status s = read_number(environment, "GCCL_DETECTION_MS", 0, kMsMax, &out->detection_ms, &found); !s.ok())
    return s;
  if (out->detection_ms > 0 && out->detection_ms < kDetectionMsMin)
    return invalid(fmt::format("GCCL_DETECTION_MS is {}, expected {} milliseconds or more, or 0 for none",
                               out->detection_ms, kDetectionMsMin));
  std::int64_t progress_thread = 0;
  if (config.progress_thread < -1 || config.progress_thread > 1)
    return invalid(fmt::format("GCCL_Config.progress_thread is {}, expected 0, 1 or -1", config.progress_thread));
  if (Status s = read_number(environment, "GCCL_PROGRESS_THREAD", 0, 1, &progress_thread, &found); !s.ok()) return s;
  out->progress_thread = config.progress_thread == -1 ? progress_thread == 1 : config.progress_thread == 1;
  return {};
}

}  // namespace gccl
