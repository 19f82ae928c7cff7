// Finished points in a file, so that an interrupted run goes on where it stopped: `gccl run --resume FILE`.
#pragma once

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "sim/scenario/plan/campaign.hpp"

namespace gccl::sim {

// Of the program with the libraries that it has loaded, and of the files that a cluster is read from.
std::string program_digest();
std::string cluster_digest(const std::filesystem::path& cluster);

// 128 bits of a text, in hexadecimal digits; not for secrets.
std::string digest(std::string_view text);

// A text file: a line that says what it is, then one line {"check", "key", "row"} for each finished point, appended as
// it finishes; "check" is a digest of the others, so that a line that was changed since is not taken for a result. It
// only grows, so whatever ends the program leaves whole lines and at most a part of the last one, which the next run
// takes away. Entries of other scenarios stay in it and do no harm.
class Journal {
 public:
  // Creates the file or reads what is in it. Throws json::InputError: no regular file, not a journal, in use by another
  // process, not to be opened.
  explicit Journal(const std::filesystem::path& file);
  ~Journal();
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  const std::filesystem::path& file() const { return file_; }
  std::size_t entries() const { return rows_.size(); }
  std::size_t damaged() const { return damaged_; }  // whole lines that are no entries, or changed ones
  // The row of this key; null when there is none.
  const nlohmann::json* find(const std::string& key) const;
  // Appends an entry. Once it cannot be written (a full disk) what was written of it is taken back, and later ones are
  // left out; error() says why.
  void add(const std::string& key, const nlohmann::json& row);
  const std::string& error() const { return error_; }

 private:
  void read();
  void append(std::string_view line);

  std::filesystem::path file_;
  int fd_ = -1;
  std::size_t damaged_ = 0;
  std::map<std::string, nlohmann::json> rows_;
  std::string error_;
};

// For each point of the campaign a text that is equal only where everything that its row depends on is: the run as the
// scenario states it (but for what it expects), the cluster's files with those that they name, the ranks' cards, the
// seed, the engine, the point's sizes and algorithms, and the program with the libraries that it has loaded.
std::vector<std::string> point_keys(const Campaign& campaign);

}  // namespace gccl::sim
