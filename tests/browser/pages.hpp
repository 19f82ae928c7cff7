// Pages that headless Chromium opens, with a probe that uses every control, and what was found on them.
#pragma once

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "tests/support/shell.hpp"

namespace pages {

using nlohmann::json;

inline int failures = 0;

inline void check(bool holds, const std::string& what) {
  if (holds) return;
  ++failures;
  std::cerr << "FAILED: " << what << "\n";
}

template <class T>
void check_equal(const json& found, const T& expected, const std::string& what) {
  check(found == json(expected), fmt::format("{}: found {}, expected {}", what, found.dump(), json(expected).dump()));
}

inline std::string chromium() {
  for (const char* name : {"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"}) {
    std::stringstream path(std::getenv("PATH") ? std::getenv("PATH") : "");
    for (std::string folder; std::getline(path, folder, ':');) {
      if (::access((folder + "/" + name).c_str(), X_OK) == 0) return folder + "/" + name;
    }
  }
  return "";
}

inline std::string content(const std::filesystem::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline std::string decoded(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size()) {
      out += char(std::stoi(text.substr(i + 1, 2), nullptr, 16));
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

// What the probe found on the page; null when it did not get to its end.
inline json probe(const std::filesystem::path& folder, const std::string& browser, const std::string& name,
                  std::string page, int width) {
  const std::size_t end = page.rfind("</body>");
  page.insert(end, "<script>" + content(GCCL_PROBE) + "</script>\n");
  const auto file = [&](const char* what) { return (folder / (name + what)).string(); };
  std::ofstream(file(".html")) << page;
  // A window cannot be as narrow as a phone's: there the page stands in a frame, which has a width of its own.
  std::string opened = file(".html");
  if (width < 500) {
    opened = file(".frame.html");
    std::ofstream(opened) << fmt::format(
        "<!DOCTYPE html><script>addEventListener('message', e => {{ const out = document.createElement('pre'); "
        "out.id = 'probe'; out.textContent = e.data; document.body.append(out); }});</script>"
        "<iframe src='{}' style='width:{}px;height:800px;border:0'></iframe>",
        name + ".html", width);
  }
  const std::string command = fmt::format(
      "timeout 120 '{}' --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run "
      "--disable-extensions "
      "--enable-logging=stderr --window-size=1300,900 --user-data-dir='{}' --dump-dom 'file://{}' >'{}' 2>'{}'",
      browser, file(".profile"), opened, file(".dom"), file(".log"));
  check(gccl::test::shell(command) == 0, name + ": chromium failed: " + content(file(".log")));
  std::istringstream log(content(file(".log")));
  for (std::string line; std::getline(log, line);) {
    check(line.find(":CONSOLE") == std::string::npos, name + ": on the console: " + line);
  }
  const std::string dom = content(file(".dom")), open = "<pre id=\"probe\">";
  const std::size_t begin = dom.find(open);
  check(begin != std::string::npos, name + ": the probe did not finish");
  if (begin == std::string::npos) return nullptr;
  const json found =
      json::parse(decoded(dom.substr(begin + open.size(), dom.find("</pre>", begin) - begin - open.size())));
  for (const json& error : found.at("errors")) check(false, name + ": " + error.get<std::string>());
  check_equal(found.at("width"), width, name + ": the window's width");
  return found;
}

inline json run(const std::string& cluster, const std::string& collective, const std::string& algorithm,
                std::uint64_t bytes, double time_us) {
  const double rate = time_us > 0 ? double(bytes) / time_us / 1e3 : 0;
  return {{"cluster", cluster},
          {"label", ""},
          {"collective", collective},
          {"algorithm", algorithm},
          {"engine", "model"},
          {"ranks", 64},
          {"bytes", bytes},
          {"count", bytes / 4},
          {"dtype", "f32"},
          {"root", 0},
          {"in_place", false},
          {"chunks", 1},
          {"channels", 1},
          {"window", 8},
          {"time_us", time_us},
          {"algbw_GBps", rate},
          {"busbw_GBps", rate},
          {"messages", 126},
          {"message_bytes", 2 * bytes},
          {"wall_s", 0.01},
          {"predicted_us", time_us * 1.1},
          {"auto", false},
          {"fastest", false},
          {"wrong", nullptr},
          {"tiers",
           {{{"tier", "nic"},
             {"links", 8},
             {"bytes", bytes},
             {"busiest_link", "nic0"},
             {"busiest_utilisation", 0.9},
             {"mean_utilisation", 0.4}}}}};
}

inline json document(const std::string& name, json runs) {
  json clusters = json::array();
  for (const json& r : runs) {
    const json c = {{"name", r.value("cluster", "")}, {"cards", 64}, {"nodes", 8}};
    if (std::find(clusters.begin(), clusters.end(), c) == clusters.end()) clusters.push_back(c);
  }
  return {{"schema", "gccl/result/1"},
          {"version", "0.1.0"},
          {"ok", true},
          {"seed", 1},
          {"clusters", clusters},
          {"scenario", {{"name", name}, {"description", name}, {"file", name}}},
          {"runs", std::move(runs)}};
}

// Opens the report of a result under a name: what the probe found.
using Open = std::function<json(const std::string& name, const json& result)>;

void test_sweep(const Open& open);

}  // namespace pages
