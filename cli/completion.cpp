// What shells and man know of the program, made from its own option tables.
#include <fmt/format.h>

#include <map>
#include <memory>

#include "cli/commands.hpp"
#include "cli/output.hpp"

namespace gccl {
namespace {

std::string last_word(const std::string& name) { return name.substr(name.rfind(' ') + 1); }

// Words to offer. Combinations such as hierarchical(ring,swing) are syntax to shells, and seldom typed.
std::string words_of(const Option& o) {
  std::string all;
  for (const std::string& word : o.words())
    if (word.find('(') == word.npos) all += (all.empty() ? "" : " ") + word;
  return all;
}

// What lists the names of shipped files that a positional argument may be, in a shell where this calls the program and
// this quotes; empty for others.
std::string lister(const Option& o, std::string_view program, char quote) {
  struct Names {
    std::string_view kind, filter;
  };
  static const std::map<std::string_view, std::vector<Names>> kShipped{
      {"SCENARIO", {{"scenarios", " | grep -v availability/"}, {"workloads", ""}}},
      {"STUDY", {{"scenarios", " | grep availability/"}}},
      {"WORKLOAD", {{"workloads", ""}}},
      {"CLUSTER", {{"topologies", ""}}}};
  const auto kinds = kShipped.find(o.placeholder());
  std::string all;
  if (kinds != kShipped.end())
    for (const auto& [kind, filter] : kinds->second)
      all += fmt::format("{0}{1} list {2} 2>/dev/null | cut -d{3} {3} -f1{4}", all.empty() ? "" : "; ", program, kind,
                         quote, filter);
  return all;
}

std::string flags_of(const Command& table) {
  std::string all;
  for (const Option& o : table.options())
    if (!o.is_positional()) all += fmt::format("{}{}", all.empty() ? "" : " ", fmt::join(o.names(), " "));
  return all;
}

std::vector<std::string> commands_of(const Command& app) {
  std::vector<std::string> all;
  for (const Command& c : app.subcommands()) all.push_back(last_word(c.name()));
  return all;
}

std::string bash_script(const Command& app) {
  std::string out = R"bash(# bash completion of gccl: written by `gccl completion bash`
_gccl_offer() {  # names, one a line on standard input; to compgen -W their characters would be syntax
  local name
  while IFS= read -r name; do
    [[ $name == "$current"* ]] && COMPREPLY+=("$(printf %q "$name")")
  done
}
_gccl() {
  local program=${COMP_WORDS[0]} current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} command= i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; ++i)); do
    [[ ${COMP_WORDS[i]} == -- ]] && return  # a program and its arguments: files
    [[ -z $command && ${COMP_WORDS[i]} != -* ]] && command=${COMP_WORDS[i]}
  done
  case $command in
)bash";
  const auto reply = [](const std::string& words) {
    return fmt::format("COMPREPLY=($(compgen -W {} -- \"$current\"))", shell_quoted(words));
  };
  out += fmt::format("    '') {} ;;\n", reply(fmt::format("{} {}", fmt::join(commands_of(app), " "), flags_of(app))));
  for (const Command& c : app.subcommands()) {
    const Command table = c.own_table();
    out += fmt::format("    {})\n      case $previous in\n", last_word(c.name()));
    std::string positional;
    for (const Option& o : table.options()) {
      if (o.is_positional()) {
        if (const std::string names = lister(o, "\"$program\"", '\''); !names.empty())
          positional += fmt::format(
              "      _gccl_offer < <({})\n"
              "      [[ $current != */* ]] && _gccl_offer < <(compgen -f -- \"$current\")\n",
              names);
        else if (last_word(c.name()) == "help")
          positional += "      " + reply(fmt::format("{}", fmt::join(commands_of(app), " "))) + "\n";
        else if (!o.words().empty())
          positional += "      " + reply(words_of(o)) + "\n";
      } else if (!o.is_flag()) {
        out += fmt::format("        {}) ", fmt::join(o.names(), "|"));
        if (!o.words().empty()) out += reply(words_of(o)) + "; ";
        out += "return ;;\n";
      }
    }
    out += fmt::format("      esac\n      [[ $current == -* ]] && {} && return\n{}      ;;\n", reply(flags_of(table)),
                       positional);
  }
  return out + "  esac\n}\ncomplete -o bashdefault -o default -F _gccl gccl\n";
}

std::string zsh_script(const Command& app) {
  // Text in brackets of _arguments.
  const auto escaped = [](const std::string& text) {
    std::string out;
    for (char c : text) {
      if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
      out += c;
    }
    return out;
  };
  std::string out =
      "#compdef gccl\n# zsh completion of gccl: written by `gccl completion zsh`\n_gccl() {\n  local -a commands\n  "
      "commands=(\n";
  for (const Command& c : app.subcommands())
    out += "    " + shell_quoted(last_word(c.name()) + ":" + c.description()) + "\n";
  out +=
      "  )\n  if ((CURRENT == 2)); then\n    _describe command commands\n    return\n  fi\n  local program=$words[1] "
      "command=$words[2]\n  shift words\n  ((CURRENT--))\n  case $command in\n";
  for (const Command& c : app.subcommands()) {
    out += fmt::format("    {})\n      _arguments", last_word(c.name()));
    const Command table = c.own_table();
    for (const Option& o : table.options()) {
      std::string values;
      if (!o.words().empty())
        values = "(" + words_of(o) + ")";
      else if (const std::string names = lister(o, "$program", '"'); !names.empty())
        values = fmt::format("{{compadd -- $({}); _files}}", names);
      else
        values = "_files";
      if (o.is_positional()) {
        out += " \\\n        " + shell_quoted(":" + o.placeholder() + ":" + values);
        continue;
      }
      for (const std::string& n : o.names())
        out += " \\\n        " + shell_quoted(n + "[" + escaped(o.help()) + "]" +
                                              (o.is_flag() ? "" : ":" + escaped(o.placeholder()) + ":" + values));
    }
    if (table.is_prefix()) out += " \\\n        '*::program:_normal'";
    out += "\n      ;;\n";
  }
  return out + "  esac\n}\n_gccl \"$@\"\n";
}

std::string fish_script(const Command& app) {
  std::string out = "# fish completion of gccl: written by `gccl completion fish`\n";
  for (const Command& c : app.subcommands())
    out += fmt::format("complete -c gccl -n __fish_use_subcommand -f -a {} -d {}\n", last_word(c.name()),
                       shell_quoted(c.description()));
  for (const Command& c : app.subcommands()) {
    const std::string here = fmt::format("complete -c gccl -n '__fish_seen_subcommand_from {}'", last_word(c.name()));
    const Command table = c.own_table();
    for (const Option& o : table.options()) {
      if (o.is_positional()) {
        if (const std::string names = lister(o, "gccl", '"'); !names.empty())
          out += fmt::format("{} -a '({})'\n", here, names);
        else if (!o.words().empty())
          out += fmt::format("{} -f -a {}\n", here, shell_quoted(words_of(o)));
        continue;
      }
      out += here;
      for (const std::string& n : o.names()) out += n.starts_with("--") ? " -l " + n.substr(2) : " -s " + n.substr(1);
      if (!o.is_flag()) out += o.words().empty() ? " -r" : " -x -a " + shell_quoted(words_of(o));
      out += " -d " + shell_quoted(o.help()) + "\n";
    }
  }
  return out;
}

// Text of a man page: no line is a request, no hyphen a dash.
std::string roff(const std::string& text) {
  std::string out;
  for (char c : text) {
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else
      out += c;
  }
  return out.starts_with(".") || out.starts_with("'") ? "\\&" + out : out;
}

std::string options_page(const Command& table) {
  std::string out;
  for (const Option& o : table.options()) {
    std::string names;
    for (const std::string& n : o.names())
      if (!o.is_positional()) names += fmt::format("{}\\fB{}\\fR", names.empty() ? "" : ", ", roff(n));
    if (!o.is_flag()) names += fmt::format("{}\\fI{}\\fR", names.empty() ? "" : " ", roff(o.placeholder()));
    out += ".TP\n" + names + "\n" + roff(o.explained()) + "\n";
  }
  return out;
}

std::string man_page(const Command& app) {
  std::string out = fmt::format(
      ".TH GCCL 1 \"\" \"gccl {}\" \"User Commands\"\n.SH NAME\ngccl \\- collective communication, simulated and real\n"
      ".SH SYNOPSIS\n.B gccl\n\\fICOMMAND\\fR [\\fIOPTIONS\\fR]\n.SH DESCRIPTION\n{}.\n",
      GCCL_VERSION_TEXT, roff(app.description()));
  out +=
      "Exit codes: 0 all held; 1 an expectation or a check failed; 2 the input is wrong; 3 an internal error, or what "
      "the machine refused;\n128 + N ended by signal N.\n.SH OPTIONS\n" +
      options_page(app);
  for (const Command& c : app.subcommands()) {
    const Command table = c.own_table();
    std::string name = table.name();
    for (char& ch : name) ch = char(std::toupper(static_cast<unsigned char>(ch)));
    out += fmt::format(".SH \"{}\"\n{}\n", name, roff(table.description()));
    out += options_page(table);
    if (!table.example_lines().empty()) out += ".PP\nExamples:\n.RS\n.nf\n";
    for (const std::string& line : table.example_lines()) out += roff(line) + "\n";
    if (!table.example_lines().empty()) out += ".fi\n.RE\n";
  }
  return out;
}

}  // namespace

// `gccl completion bash|zsh|fish|man`: a completion script, or the man page gccl(1), on standard output.
void add_completion(Command& app, int&) {
  const auto what = std::make_shared<std::string>();
  Command* command = app.add_subcommand("completion", "Prints a shell's completion script, or the man page");
  command->add_option("what", *what, "For which shell, or man")->required()->check(OneOf{"bash", "zsh", "fish", "man"});
  command->examples({"source <(gccl completion bash)", "gccl completion man > gccl.1 && man ./gccl.1"});
  command->callback([what, &app] {
    write_stdout(*what == "bash"   ? bash_script(app)
                 : *what == "zsh"  ? zsh_script(app)
                 : *what == "fish" ? fish_script(app)
                                   : man_page(app));
  });
}

}  // namespace gccl
