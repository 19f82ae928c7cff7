// What --help prints.
#include <fmt/format.h>

#include <algorithm>

#include "cli/command.hpp"

namespace gccl {
namespace {

constexpr std::size_t kColumn = 28, kWidth = 110;

// "  left    text", the text in lines of its own column.
std::string row(const std::string& left, const std::string& text) {
  std::string out = "  " + left;
  if (out.size() + 2 > kColumn) {
    out += '\n';
  } else {
    out.resize(kColumn, ' ');
  }
  std::size_t column = out.back() == '\n' ? 0 : kColumn;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    if (column + end - at > kWidth) {
      out += '\n';
      column = 0;
    }
    if (column == 0) {
      out.append(kColumn, ' ');
      column = kColumn;
    } else if (column > kColumn) {
      out += ' ';
      ++column;
    }
    out.append(text, at, end - at);
    column += end - at;
    at = end + 1;
  }
  return out + '\n';
}

std::string left_of(const Option& o) {
  if (o.is_positional()) return o.placeholder();
  std::string text = fmt::format("{}", fmt::join(o.names(), ", "));
  return o.is_flag() ? text : text + ' ' + o.placeholder();
}

}  // namespace

std::string Command::help() const {
  if (named_) return help_of(*named_);
  std::string text = description_ + "\n\nUsage: " + name_ + " [OPTIONS]";
  std::string positional, options, commands;
  for (const Option& o : options_) {
    if (o.is_positional()) {
      const std::string value = o.placeholder() + (o.repeats() ? "..." : "");
      text += o.is_required() ? ' ' + value : " [" + value + ']';
    }
    (o.is_positional() ? positional : options) += row(left_of(o), o.explained());
  }
  for (const Command& c : subcommands_) commands += row(c.name_.substr(name_.size() + 1), c.description_);
  if (!commands.empty()) text += " COMMAND ...";
  if (takes_program_) text += " -- PROGRAM [ARGUMENTS...]";
  text += '\n';
  if (!positional.empty()) text += '\n' + positional;
  if (!commands.empty()) text += "\nCommands (gccl COMMAND --help says more):\n" + commands;
  text += "\nOptions:\n" + options;
  if (!examples_.empty()) text += "\nExamples:\n";
  for (const std::string& line : examples_) text += "  " + line + '\n';
  return text;
}

std::string Command::help_of(const Command& command) {
  Command table = command.own_table();
  table.named_ = nullptr;
  return table.help();
}

}  // namespace gccl
