// Finished points in a file, so that an interrupted run goes on where it stopped: `gccl run --resume FILE`.
#pragma once

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>

namespace gccl::sim {

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
  std::size_t entries() const { return had_.size(); }  // when it was opened
  bool had(const std::string& key) const { return had_.contains(key); }
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
  std::set<std::string> had_;
  std::string error_;
};

}  // namespace gccl::sim
