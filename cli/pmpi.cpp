// `gccl pmpi`: runs an MPI program with the drop-in in front of its MPI, or says why that is impossible.
#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "cli/child_output.hpp"
#include "cli/commands.hpp"
#include "cli/installation.hpp"
#include "cli/output.hpp"
#include "libgccl/base/environment.hpp"
#include "libgccl/json/reader.hpp"

namespace gccl {
namespace {

// Other libraries, also such as answer MPI's functions in front of it, do not have it (pmpi/pmpi.map).
constexpr std::string_view kOnlyInDropIn = "GCCL_PMPI_stats";

[[noreturn]] void refuse(const std::string& text) { throw json::InputError(fmt::format("pmpi: {}", text)); }

bool readable(const std::string& file) { return ::access(file.c_str(), R_OK) == 0; }

// Beside the program in a build, in the library folder where it was installed.
std::string find_drop_in() {
  const std::vector<std::filesystem::path> places = drop_in_files();
  for (const std::filesystem::path& place : places)
    if (readable(place)) return place;
  refuse(fmt::format("no libgccl_pmpi.so in {} or {}: GCCL was built without MPI; or name it with --library",
                     places[0].string(), places[1].string()));
}

std::string find_program(const std::string& name) {
  if (name.find('/') != name.npos) {
    if (::access(name.c_str(), X_OK) != 0) refuse(fmt::format("{}: {}", name, std::strerror(errno)));
    return name;
  }
  const char* const path = process_environment()("PATH");
  std::istringstream folders(path ? path : "/usr/local/bin:/usr/bin:/bin");
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::string file = (folder.empty() ? "." : folder) + "/" + name;
    struct stat what {};
    if (::access(file.c_str(), X_OK) == 0 && ::stat(file.c_str(), &what) == 0 && S_ISREG(what.st_mode)) return file;
  }
  refuse(fmt::format("no program \"{}\" in PATH; for one in this folder write ./{}", name, name));
}

// What the kernel starts for `file`: itself, or the interpreter of a script.
std::string started_for(std::string file) {
  for (int depth = 0; depth < 5; ++depth) {
    std::ifstream in(file, std::ios::binary);
    std::string line;
    if (!in) refuse(fmt::format("{}: cannot be read: {}", file, std::strerror(errno)));
    if (in.get() != '#' || in.get() != '!') return file;
    std::getline(in, line);
    std::istringstream words(line);
    if (!(words >> file)) break;
  }
  refuse(fmt::format("{}: no interpreter in its first line", file));
}

// The loader that `file` asks for. Without one nothing is loaded into it.
std::string loader_of(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  Elf64_Ehdr header{};
  in.read(reinterpret_cast<char*>(&header), sizeof header);
  if (!in || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
    refuse(fmt::format("{}: neither a program nor a script", file));
  if (header.e_ident[EI_CLASS] != ELFCLASS64)
    refuse(fmt::format("{}: a 32-bit program; the drop-in has 64 bits", file));
  for (int i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr part{};
    in.seekg(std::streamoff(header.e_phoff) + i * std::streamoff(header.e_phentsize));
    in.read(reinterpret_cast<char*>(&part), sizeof part);
    if (!in) break;
    if (part.p_type != PT_INTERP || part.p_filesz == 0 || part.p_filesz > 4096) continue;
    std::string loader(part.p_filesz, '\0');
    in.seekg(std::streamoff(part.p_offset));
    in.read(loader.data(), std::streamsize(loader.size()));
    return loader.c_str();
  }
  refuse(fmt::format(
      "{} is linked statically: nothing can be loaded in front of its MPI. Link it with MPI's shared library", file));
}

// Whether a 64-bit ELF file defines that symbol for others. False also where it cannot be read as such.
bool exports(const std::string& file, std::string_view symbol) {
  std::ifstream in(file, std::ios::binary);
  const auto read = [&in](std::uint64_t at, auto* to, std::size_t n) {
    in.seekg(std::streamoff(at));
    return bool(in.read(reinterpret_cast<char*>(to), std::streamsize(n * sizeof *to)));
  };
  Elf64_Ehdr header{};
  if (!read(0, &header, 1) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return false;
  std::vector<Elf64_Shdr> sections(header.e_shnum);
  if (!read(header.e_shoff, sections.data(), sections.size())) return false;
  const std::uint64_t size = std::filesystem::file_size(file);
  for (const Elf64_Shdr& s : sections) {
    if (s.sh_type != SHT_DYNSYM || s.sh_link >= sections.size()) continue;
    const Elf64_Shdr& names = sections[s.sh_link];
    if (s.sh_size > size || names.sh_size > size) return false;
    std::vector<Elf64_Sym> symbols(s.sh_size / sizeof(Elf64_Sym));
    std::string text(names.sh_size, '\0');
    if (!read(s.sh_offset, symbols.data(), symbols.size()) || !read(names.sh_offset, text.data(), text.size()))
      return false;
    for (const Elf64_Sym& one : symbols)
      if (one.st_shndx != SHN_UNDEF && one.st_name < text.size() && text.c_str() + one.st_name == symbol) return true;
  }
  return false;
}

// What the loader would load for `program`, as it lists it, errors included.
std::string loaded(const std::string& loader, const std::string& program, const std::string& preload) {
  try {
    return captured_output([&] {
             ::dup2(1, 2);
             ::setenv("LD_PRELOAD", preload.c_str(), 1);
             ::execl(loader.c_str(), loader.c_str(), "--list", program.c_str(), nullptr);
           })
        .text;
  } catch (const std::runtime_error& e) {
    refuse(e.what());
  }
}

// The MPI libraries in such a list, without their folders: libmpi.so.40 (Open MPI), libmpich.so.12, libmpi.so.12.
std::set<std::string> mpis(const std::string& list) {
  std::set<std::string> all;
  std::istringstream lines(list);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name;
    words >> name;
    name = name.substr(name.rfind('/') + 1);
    if (name.starts_with("libmpi.so") || name.starts_with("libmpich.so")) all.insert(name);
  }
  return all;
}

// A set of capabilities of this process, as /proc/self/status writes it. Where that cannot be read: all.
std::uint64_t own_capabilities(const std::string& set) {
  std::ifstream in("/proc/self/status");
  for (std::string word; in >> word;)
    if (std::uint64_t all = 0; word == set + ":" && in >> std::hex >> all) return all;
  return ~std::uint64_t(0);
}

// Whether `file` makes the kernel start it for secure execution, for its capabilities: where their effective bit is
// set, whatever comes of them, or where it adds to the caller's (cap_bprm_creds_from_file() of Linux).
bool adds_capabilities(const std::string& file, bool no_new_privileges) {
  vfs_ns_cap_data words{};
  if (::getuid() == 0 || ::getxattr(file.c_str(), "security.capability", &words, sizeof words) <= 0) return false;
  if (words.magic_etc & VFS_CAP_FLAGS_EFFECTIVE) return true;
  const std::uint64_t permitted = words.data[0].permitted | std::uint64_t(words.data[1].permitted) << 32;
  const std::uint64_t inheritable = words.data[0].inheritable | std::uint64_t(words.data[1].inheritable) << 32;
  std::uint64_t added = (permitted & own_capabilities("CapBnd")) | (inheritable & own_capabilities("CapInh"));
  if (no_new_privileges) added &= own_capabilities("CapPrm");
  return added != 0;
}

// Requires that the kernel does not start `file` for secure execution, in which the loader loads nothing else.
void require_unprivileged(const std::string& file) {
  struct stat what {};
  struct statvfs mount {};
  if (::stat(file.c_str(), &what) != 0) return;
  if (::statvfs(file.c_str(), &mount) == 0 && (mount.f_flag & ST_NOSUID)) return;
  const bool no_new_privileges = ::prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1;
  if (!no_new_privileges && (((what.st_mode & S_ISUID) && what.st_uid != ::getuid()) ||
                             ((what.st_mode & S_ISGID) && what.st_gid != ::getgid())))
    refuse(fmt::format("{} changes its user or group: the system loads nothing else into it", file));
  if (adds_capabilities(file, no_new_privileges))
    refuse(fmt::format("{} has capabilities of its own (getcap): the system loads nothing else into it", file));
}

// Requires that `program`, started with `preload`, has `drop_in` in front of the MPI that it was built for. Returns
// what the loader lists.
std::string require_in_force(const std::string& program, const std::string& drop_in, const std::string& preload) {
  const std::string file = started_for(program);
  require_unprivileged(file);
  const std::string loader = loader_of(file);
  if (exports(file, "MPI_Init"))
    refuse(
        fmt::format("{} answers MPI_Init itself, as where a tool is linked into it: nothing can be loaded in front of "
                    "that. Link it without",
                    file));
  const std::string list = loaded(loader, file, preload);
  const bool there = list.find(drop_in + " (0x") != list.npos;
  if (!there || list.find("not found") != list.npos)
    refuse(fmt::format("{}: the loader {} does not load it: {}", drop_in, loader,
                       list.empty() ? "it ends without a word; is the file whole?" : list.substr(0, 2000)));
  if (!exports(drop_in, kOnlyInDropIn))
    refuse(
        fmt::format("{} is no drop-in for MPI: it does not export {}, and {} would run on its MPI alone. Expected a "
                    "libgccl_pmpi.so",
                    drop_in, kOnlyInDropIn, file));
  if (mpis(list).size() < 2) return list;
  const std::set<std::string> own = mpis(loaded(loader, file, ""));
  for (const std::string& name : mpis(list))
    if (!own.contains(name))
      refuse(
          fmt::format("{} uses {}, but {} is built for {}: build GCCL for the program's MPI "
                      "(-DGCCL_PMPI_COMPILER=mpicxx.mpich) and name that drop-in with --library",
                      file, *own.begin(), drop_in, name));
  return list;
}

// The libraries that such a list names: "NAME => FILE (0x...)", "FILE (0x...)".
std::vector<std::string> files_of(const std::string& list) {
  std::vector<std::string> all;
  std::istringstream lines(list);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string file, arrow, found;
    if (words >> file >> arrow && arrow == "=>" && words >> found) file = found;
    if (file.find('/') != file.npos) all.push_back(file);
  }
  return all;
}

bool is_first_rank() {
  for (const char* const variable : {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"})
    if (const std::string rank = read_text(process_environment(), variable); !rank.empty()) return rank == "0";
  return true;
}

// A tool between the drop-in and MPI sees none of what the drop-in answers, and its MPI_Init is never called. In front
// of the drop-in it would call MPI past it. MPI itself may stand there.
void warn_of_tools(const std::string& list) {
  if (!is_first_rank()) return;
  bool fortran = false;
  for (const std::string& file : files_of(list)) {
    const std::string name = file.substr(file.rfind('/') + 1);
    fortran |= name.starts_with("libmpi_mpifh.so") || name.starts_with("libmpi_usempi");
    if (mpis(file).empty() && exports(file, "MPI_Init") && !exports(file, kOnlyInDropIn))
      fmt::print(stderr,
                 "gccl pmpi: warning: {} answers MPI's functions, too: MPI_Init, and every call that the drop-in "
                 "answers, goes past it. Use it without gccl pmpi\n",
                 file);
  }
  if (fortran)
    fmt::print(stderr,
               "gccl pmpi: warning: the program has MPI's functions for Fortran: what it calls by these goes past the "
               "drop-in, and all of it where it starts MPI so\n");
}

struct Options {
  std::string library;
  bool stats = false;
};

// Options that write to `o` when they are parsed.
Command table(Options& o) {
  Command app(
      "Runs an MPI program with GCCL in front of its MPI; mpirun starts it on every rank. It checks on each rank that "
      "the "
      "program will load the drop-in, libgccl_pmpi.so, and fails where it would not.",
      "gccl pmpi");
  app.prefix_command();
  app.takes_program();
  app.add_flag("--stats", o.stats, "Rank 0 prints at MPI_Finalize who answered which calls");
  app.add_option("--library", o.library, "Another drop-in, such as one built for another MPI")->value("FILE");
  app.examples({"mpirun -n 4 gccl pmpi ./program", "mpirun -n 4 gccl pmpi --stats -- ./program --its-own-option"});
  return app;
}

int run_with_drop_in(const std::vector<std::string>& words) {
  Options o;
  Command app = table(o);
  try {
    app.parse(words);
  } catch (const UsageError& e) {
    refuse(e.what());
  }
  if (app.asked() == Command::Asked::help) return write_stdout(app.help()), 0;
  std::vector<std::string> arguments = app.remaining();
  if (!arguments.empty() && arguments[0] == "--") {
    arguments.erase(arguments.begin());
  } else if (!arguments.empty() && arguments[0].starts_with("-")) {
    refuse(app.unknown_option(arguments[0]));
  }
  std::string drop_in = o.library;
  if (arguments.empty()) refuse("expected a program: mpirun -n 4 gccl pmpi [OPTIONS] [--] PROGRAM [ARGUMENTS...]");
  if (drop_in.empty()) {
    drop_in = find_drop_in();
  } else if (!readable(drop_in)) {
    refuse(fmt::format("--library {}: {}", drop_in, std::strerror(errno)));
  }
  if (std::error_code none; !std::filesystem::is_regular_file(drop_in, none))  // a pipe would be waited for
    refuse(fmt::format("{}: no regular file; expected a libgccl_pmpi.so", drop_in));
  const std::unique_ptr<char, decltype(&std::free)> full(::realpath(drop_in.c_str(), nullptr), std::free);
  if (full) drop_in = full.get();
  if (drop_in.find_first_of(": ") != drop_in.npos)
    refuse(
        fmt::format("{}: the loader's LD_PRELOAD takes no file with a blank or a colon in its name; "
                    "install to another folder",
                    drop_in));

  const std::string program = find_program(arguments[0]);
  const std::string others = read_text(process_environment(), "LD_PRELOAD");
  const std::string preload = others.empty() ? drop_in : drop_in + ":" + others;
  warn_of_tools(require_in_force(program, drop_in, preload));
  ::setenv("LD_PRELOAD", preload.c_str(), 1);
  if (o.stats) ::setenv("GCCL_PMPI_STATS", "1", 1);
  std::vector<char*> argv;
  for (const std::string& a : arguments) argv.push_back(const_cast<char*>(a.c_str()));
  argv.push_back(nullptr);
  ::execv(program.c_str(), argv.data());
  refuse(fmt::format("{}: {}", program, std::strerror(errno)));
}

}  // namespace

// Parses the words behind its name by itself, and becomes the program, whose exit code is then the process's own; it
// returns only with --help, or throws json::InputError.
void add_pmpi(Command& app, int& exit_code) {
  Command* const command = app.add_subcommand("pmpi", "Runs an MPI program with GCCL in front of its MPI");
  command->parses_itself([] {
    Options o;
    return table(o);  // to be looked at, not to be parsed with
  });
  command->callback([command, &exit_code] { exit_code = run_with_drop_in(command->remaining()); });
}

}  // namespace gccl
