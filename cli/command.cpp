#include "cli/command.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <concepts>
#include <limits>

#include "libgccl/json/nearest.hpp"

namespace gccl {
namespace {

// Whole numbers with all their digits.
std::string written_out(long double number) {
  return number == std::floor(number) && std::abs(number) < 1e20L ? fmt::format("{:.0f}", number)
                                                                  : fmt::format("{}", double(number));
}

std::vector<std::string> split(const std::string& names) {
  std::vector<std::string> all(1);
  for (char c : names) c == ',' ? all.emplace_back() : all.back() += c, void();
  return all;
}

template <class T>
std::string read(const std::string& word, T& into, std::string_view expected) {
  const char* end = word.data() + word.size();
  const auto [stop, error] = std::from_chars(word.data(), end, into);
  if (error == std::errc() && stop == end && !word.empty()) return {};
  if constexpr (std::integral<T>)
    if (error == std::errc::result_out_of_range && stop == end)
      return fmt::format("found \"{}\", expected a whole number from {} to {}", word, std::numeric_limits<T>::min(),
                         std::numeric_limits<T>::max());
  return fmt::format("found \"{}\", expected {}", word, expected);
}

std::string suggest_words(const std::string& word, const std::vector<std::string>& words) {
  const std::vector<std::string_view> names(words.begin(), words.end());
  return suggestion(word, names);
}

}  // namespace

Option::Option(std::string names, std::string help, Store store)
    : names_(split(names)), help_(std::move(help)), store_(std::move(store)) {}

Option* Option::required() {
  required_ = true;
  return this;
}

Option* Option::required_unless(const bool& flag) {
  unless_ = &flag;
  return required();
}

Option* Option::check(Range range) {
  // 0.1 as users write it, which is a little less than the double of that name.
  for (long double* bound : {&range.least, &range.most})
    if (*bound != std::floor(*bound)) read(fmt::format("{}", double(*bound)), *bound, "");
  range_ = range;
  return this;
}

Option* Option::check(OneOf words) {
  words_only_ = true;
  return suggest(std::move(words));
}

Option* Option::suggest(OneOf words) {
  words_ = std::move(words);
  return this;
}

Option* Option::value(std::string placeholder) {
  placeholder_ = std::move(placeholder);
  return this;
}

Option* Option::capture_default_str() {
  if (show_) default_ = show_();
  return this;
}

Option* Option::formerly(std::string name) {
  earlier_names_.push_back(std::move(name));
  return this;
}

bool Option::is_called(const std::string& name) const {
  const auto among = [&](const std::vector<std::string>& names) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  return among(names_) || among(earlier_names_);
}

void Option::take(const std::string& word) {
  const std::string& name = is_positional() ? placeholder_ : long_name();
  if (given_ && !repeats_) throw UsageError(fmt::format("{}: given twice", name));
  given_ = true;
  if (!flag_ && word.empty()) throw UsageError(fmt::format("{}: found \"\", expected {}", name, placeholder_));
  if (words_only_ && std::find(words_.begin(), words_.end(), word) == words_.end())
    throw UsageError(fmt::format("{}: found \"{}\"{}", name, word, suggest_words(word, words_)));
  const std::string wrong = store_(word);
  long double number = 0;
  if (range_ &&
      (!wrong.empty() || !read(word, number, "").empty() || !(number >= range_->least && number <= range_->most)))
    throw UsageError(fmt::format("{}: found \"{}\", expected a number from {} to {}", name, word,
                                 written_out(range_->least), written_out(range_->most)));
  if (!wrong.empty()) throw UsageError(fmt::format("{}: {}", name, wrong));
}

std::string Option::explained() const {
  std::string text = help_;
  const auto add = [&](const std::string& more) { text += (text.empty() ? "" : "; ") + more; };
  if (range_ && range_->most < 1e9L) add(fmt::format("{} to {}", double(range_->least), double(range_->most)));
  if (words_only_) add(fmt::format("one of {}", fmt::join(words_, ", ")));
  if (!default_.empty()) add("default " + default_);
  return text;
}

Command::Command(std::string description, std::string name)
    : description_(std::move(description)), name_(std::move(name)) {
  add("-h,--help", "Print this help and exit", {})->flag_ = true;
}

Command* Command::add_subcommand(const std::string& name, const std::string& description) {
  return &subcommands_.emplace_back(description, name_ + " " + name);
}

Option* Command::add(const std::string& names, const std::string& help, Option::Store store) {
  Option* option = &options_.emplace_back(names, help, std::move(store));
  if (option->is_positional()) {
    option->placeholder_ = names;
    for (char& c : option->placeholder_) c = char(std::toupper(static_cast<unsigned char>(c)));
  }
  return option;
}

Option* Command::add_option(const std::string& names, std::string& into, const std::string& help) {
  Option* option = add(names, help, [&into](const std::string& word) {
    into = word;
    return std::string();
  });
  option->show_ = [&into] { return into; };
  return option;
}

Option* Command::add_option(const std::string& names, std::vector<std::string>& into, const std::string& help) {
  Option* option = add(names, help, [&into](const std::string& word) {
    into.push_back(word);
    return std::string();
  });
  option->repeats_ = true;
  return option;
}

Option* Command::add_option(const std::string& names, std::optional<std::int64_t>& into, const std::string& help) {
  Option* option = add(names, help, [&into](const std::string& word) {
    std::int64_t number = 0;
    std::string wrong = read_number(word, number);
    if (wrong.empty()) into = number;
    return wrong;
  });
  return option->value("N");
}

Option* Command::add_flag(const std::string& names, bool& into, const std::string& help) {
  Option* option = add(names, help, [&into](const std::string&) {
    into = true;
    return std::string();
  });
  option->flag_ = option->repeats_ = true;
  return option;
}

void Command::add_version_flag() { add("-V,--version", "Print the version and exit", {})->flag_ = true; }

void Command::parses_itself(std::function<Command()> table) {
  options_.clear();
  prefix_ = true;
  table_ = std::move(table);
}

Command Command::own_table() const { return table_ ? table_() : *this; }

const Command& Command::subcommand(std::string_view name) const {
  std::vector<std::string> known;
  for (const Command& c : subcommands_) {
    known.push_back(c.name_.substr(name_.size() + 1));
    if (known.back() == name) return c;
  }
  throw UsageError(fmt::format("unknown command \"{}\"{}", name, suggest_words(std::string(name), known)));
}

std::string Command::unknown_option(const std::string& word) const {
  std::vector<std::string> known;
  for (const Option& o : options_)
    if (!o.is_positional()) known.push_back(o.long_name());
  return fmt::format("unknown option \"{}\"{}", word, suggest_words(word.substr(0, word.find('=')), known));
}

void Command::parse(const std::vector<std::string>& words) { parse(words, 0); }

void Command::parse(const std::vector<std::string>& words, std::size_t at) {
  bool options = true;  // no "--" so far
  while (at < words.size()) {
    const std::string& word = words[at];
    if (options && word == "--" && !prefix_) {
      options = false;
      ++at;
      continue;
    }
    if (options && word.size() > 1 && word[0] == '-') {
      const std::size_t taken = parse_option(words, at);
      if (asked_ != Asked::nothing) return;
      if (taken == 0 && !prefix_) throw UsageError(unknown_option(word));
      if (taken > 0) {
        at += taken;
        continue;
      }
    }
    if (!subcommands_.empty()) {
      named_ = &subcommand(word);
      auto* command = const_cast<Command*>(named_);
      command->parse(words, at + 1);
      asked_ = command->asked_;
      return;
    }
    if (prefix_) {
      remaining_.assign(words.begin() + std::ptrdiff_t(at), words.end());
      break;
    }
    take_positional(word);
    ++at;
  }
  check_complete();
  if (run_) run_();
}

std::size_t Command::parse_option(const std::vector<std::string>& words, std::size_t at) {
  const std::string& word = words[at];
  const bool is_long = word.starts_with("--");
  const std::size_t equals = is_long ? word.find('=') : word.npos;
  const std::string name = is_long ? word.substr(0, equals) : word.substr(0, 2);
  for (Option& option : options_) {
    if (!option.is_called(name)) continue;
    if (option.flag_) {
      if (equals != word.npos || (!is_long && word.size() > 2))
        throw UsageError(fmt::format("{}: takes no value, found \"{}\"", name, word));
      if (option.store_) option.take("");
      if (name == "-h" || name == "--help") asked_ = Asked::help;
      if (name == "-V" || name == "--version") asked_ = Asked::version;
      return 1;
    }
    if (equals != word.npos) return option.take(word.substr(equals + 1)), 1;
    if (!is_long && word.size() > 2) return option.take(word.substr(2)), 1;
    const auto is_option = [&](const std::string& next) {
      return std::any_of(options_.begin(), options_.end(), [&](const Option& o) { return o.is_called(next); });
    };
    if (at + 1 == words.size() || is_option(words[at + 1]))
      throw UsageError(fmt::format("{}: expected {} behind it", name, option.placeholder_));
    return option.take(words[at + 1]), 2;
  }
  return 0;
}

void Command::take_positional(const std::string& word) {
  for (Option& option : options_)
    if (option.is_positional() && (!option.given_ || option.repeats_)) return option.take(word);
  throw UsageError(fmt::format("unknown argument \"{}\"", word));
}

void Command::check_complete() const {
  for (const Option& option : options_) {
    if (!option.required_ || option.given_ || (option.unless_ && *option.unless_)) continue;
    const std::string name = option.is_positional() ? option.placeholder_ : option.long_name();
    const std::string what =
        option.words_.empty() ? option.help_ : fmt::format("one of {}", fmt::join(option.words_, ", "));
    throw UsageError(fmt::format("{} is required: {} ({} --help says more)", name, what, name_));
  }
}

std::string Command::read_number(const std::string& word, std::int64_t& into) {
  return read(word, into, "a whole number");
}
std::string Command::read_number(const std::string& word, std::uint64_t& into) {
  return read(word, into, "a whole number of at least 0");
}
std::string Command::read_number(const std::string& word, double& into) {
  std::string wrong = read(word, into, "a number");
  return wrong.empty() && !std::isfinite(into) ? fmt::format("found \"{}\", expected a number", word) : wrong;
}
std::string Command::show_number(long double value) { return fmt::format("{}", double(value)); }

bool asks_for_help(const std::vector<std::string>& words) {
  return std::any_of(words.begin(), words.end(), [](const std::string& w) { return w == "--help" || w == "-h"; });
}

std::string word_after(std::string_view option, const std::vector<std::string>& words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == option && i + 1 < words.size()) return words[i + 1];
    if (words[i].starts_with(option) && words[i].substr(option.size()).starts_with("="))
      return words[i].substr(option.size() + 1);
  }
  return {};
}

}  // namespace gccl
