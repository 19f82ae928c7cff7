// Commands and their options. One table serves the parser, --help, the man page and the shells' completion. Its own, as
// CLI11 took 3.3 s to compile in each file that included it.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <list>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace gccl {

// Wrong words on the command line: exit code 2. what() is one line.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Numbers that an option takes, bounds included.
struct Range {
  long double least, most;
};
// Words that an option takes.
using OneOf = std::vector<std::string>;

// One option ("-n,--ranks"), flag ("--quiet") or positional argument ("scenario") of a command.
class Option {
 public:
  // Stores the word in what add_option was given; what is wrong with it, or empty.
  using Store = std::function<std::string(const std::string&)>;

  Option(std::string names, std::string help, Store store);

  Option* required();
  Option* required_unless(const bool& flag);
  Option* check(Range range);
  Option* check(OneOf words);
  Option* suggest(OneOf words);            // for completion alone: other words are taken too
  Option* value(std::string placeholder);  // in the help; "FILE", "SCENARIO" and "CLUSTER" are completed as such
  Option* capture_default_str();           // shows the present value in the help
  Option* formerly(std::string name);      // an earlier name: taken as before, and shown nowhere

  bool is_positional() const { return names_[0][0] != '-'; }
  bool is_flag() const { return flag_; }
  bool is_required() const { return required_ && !unless_; }
  bool repeats() const { return repeats_; }
  const std::vector<std::string>& names() const { return names_; }  // as typed: "-n", "--ranks"
  const std::string& long_name() const { return names_.back(); }
  const std::string& help() const { return help_; }
  const std::string& placeholder() const { return placeholder_; }
  const OneOf& words() const { return words_; }  // may be taken, or only suggested
  std::string explained() const;                 // the help with range, words and default

 private:
  friend class Command;
  void take(const std::string& word);
  bool is_called(const std::string& name) const;

  std::vector<std::string> names_, earlier_names_;
  std::string help_, placeholder_ = "VALUE", default_;
  Store store_;
  std::function<std::string()> show_;
  std::optional<Range> range_;
  OneOf words_;
  const bool* unless_ = nullptr;
  bool words_only_ = false, flag_ = false, required_ = false, repeats_ = false, given_ = false;
};

template <class T>
concept Number = std::integral<T> || std::floating_point<T>;

class Command {
 public:
  Command(std::string description, std::string name);  // "gccl", or "gccl launch" for one that parses its own words

  Command* add_subcommand(const std::string& name, const std::string& description);
  Option* add_option(const std::string& names, std::string& into, const std::string& help);
  Option* add_option(const std::string& names, std::vector<std::string>& into, const std::string& help);  // may repeat
  Option* add_option(const std::string& names, std::optional<std::int64_t>& into, const std::string& help);
  template <Number T>
  Option* add_option(const std::string& names, T& into, const std::string& help);
  Option* add_flag(const std::string& names, bool& into, const std::string& help);
  void callback(std::function<void()> run) { run_ = std::move(run); }
  // Commands to copy, shown at the end of the help.
  void examples(std::vector<std::string> lines) { examples_ = std::move(lines); }
  // Leaves everything from the first word that is none of its options to remaining().
  void prefix_command() { prefix_ = true; }
  // The help shows "-- PROGRAM [ARGUMENTS...]".
  void takes_program() { takes_program_ = true; }
  // A command that parses its own words: they all go to remaining(), --help too; `table` makes its options, for the
  // help of others.
  void parses_itself(std::function<Command()> table);

  // Takes the words behind the command's name, runs the callback of the command that they name, if any. Throws
  // UsageError. A command that was asked for help does nothing else: see asked().
  void parse(const std::vector<std::string>& words);
  enum class Asked : std::uint8_t { nothing, help, version };
  Asked asked() const { return asked_; }
  const std::vector<std::string>& remaining() const { return remaining_; }
  std::string help() const;  // of the command that was typed
  static std::string help_of(const Command& command);
  void add_version_flag();  // -V, --version

  bool is_prefix() const { return prefix_; }
  const std::string& name() const { return name_; }
  const std::string& description() const { return description_; }
  const std::vector<std::string>& example_lines() const { return examples_; }
  const std::list<Option>& options() const { return options_; }
  const std::list<Command>& subcommands() const { return subcommands_; }
  // Throws UsageError, with the nearest name.
  const Command& subcommand(std::string_view name) const;
  // What is wrong with a word that is no option of this command.
  std::string unknown_option(const std::string& word) const;
  Command own_table() const;  // itself, or what parses_itself was given

 private:
  Option* add(const std::string& names, const std::string& help, Option::Store store);
  void parse(const std::vector<std::string>& words, std::size_t at);
  std::size_t parse_option(const std::vector<std::string>& words, std::size_t at);  // 0: not one of ours
  void take_positional(const std::string& word);
  void check_complete() const;
  static std::string read_number(const std::string& word, std::int64_t& into);
  static std::string read_number(const std::string& word, std::uint64_t& into);
  static std::string read_number(const std::string& word, double& into);
  static std::string show_number(long double value);

  std::string description_, name_;
  std::list<Option> options_;  // addresses stay
  std::list<Command> subcommands_;
  std::function<void()> run_;
  std::function<Command()> table_;
  std::vector<std::string> examples_, remaining_;
  const Command* named_ = nullptr;  // the subcommand that was typed
  Asked asked_ = Asked::nothing;
  bool prefix_ = false, takes_program_ = false;
};

template <Number T>
Option* Command::add_option(const std::string& names, T& into, const std::string& help) {
  using Wide = std::conditional_t<std::floating_point<T>, double,
                                  std::conditional_t<std::signed_integral<T>, std::int64_t, std::uint64_t>>;
  Option* option = add(names, help, [&into](const std::string& word) {
    Wide wide{};
    std::string wrong = read_number(word, wide);
    into = T(wide);
    return wrong.empty() && Wide(into) != wide ? "found " + word + ", too large a number" : wrong;
  });
  option->placeholder_ = std::floating_point<T> ? "NUMBER" : "N";
  option->show_ = [&into] { return show_number(static_cast<long double>(into)); };
  return option;
}

// What comes of words for a command: its options, or instead of them the help text, or in one line what is wrong.
struct Help {
  std::string text;
};
struct WrongOptions {
  std::string text;
};
template <class Options>
using Parsed = std::variant<Options, Help, WrongOptions>;

// By a table that writes to `options`. `resolve` then makes every check that is not the table's own; what is wrong, or
// empty.
template <class Options, class Resolve>
Parsed<Options> parse_with(Command& table, const std::vector<std::string>& words, Options& options, Resolve resolve) {
  try {
    table.parse(words);
  } catch (const UsageError& e) {
    return WrongOptions{e.what()};
  }
  if (table.asked() == Command::Asked::help) return Help{table.help()};
  if (std::string wrong = resolve(); !wrong.empty()) return WrongOptions{std::move(wrong)};
  return std::move(options);
}

// Whether words that nobody has parsed ask for help.
bool asks_for_help(const std::vector<std::string>& words);
// The value of an option among words that nobody has parsed, "--backend shm" or "--backend=shm"; empty where it is not
// there.
std::string word_after(std::string_view option, const std::vector<std::string>& words);

}  // namespace gccl
