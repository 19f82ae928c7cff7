// What the program does where its standard streams are closed or full, and that it overwrites nothing that it reads.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "tests/support/program.hpp"
#include "tests/support/shell.hpp"

using namespace gccl::test;
using Json = nlohmann::json;

namespace {

// The exit code of the program as a shell starts it.
int shell_gccl(const fs::path& folder, const std::string& arguments) {
  return shell(fmt::format("'{}' {}", GCCL_PROGRAM, arguments), folder);
}

Json parameters() {
  return {{"schema", "gccl/parameters/1"},
          {"name", "p"},
          {"card", {{"overhead_ns", 500}, {"combine_GBps", 100}, {"copy_GBps", 200}}},
          {"eager_bytes", "64KiB"},
          {"links", {{"l", {{"bandwidth_GBps", 25}, {"latency_ns", 1000}}}}}};
}

Json cluster(const Json& parameters) {
  const Json node = {{"count", 1}, {"cards", 8}, {"inside", {{"kind", "switch"}, {"link", "l"}}}};
  return {{"schema", "gccl/cluster/1"}, {"name", "c"}, {"parameters", parameters}, {"nodes", {node}}};
}

Json small_scenario(const Json& cluster, const Json& expect = Json::array({{{"max_time_us", "1s"}}})) {
  const Json run = {{"collective", "allreduce"}, {"bytes", 64}, {"algorithms", "ring"}, {"expect", expect}};
  return {{"schema", "gccl/scenario/1"}, {"name", "t"}, {"cluster", cluster}, {"runs", {run}}};
}

}  // namespace

TEST_CASE("an error keeps its exit code where standard error is closed or full") {
  const Folder folder;
  folder.write("c.json", cluster(parameters()).dump());
  folder.write("s.json", small_scenario("c.json").dump());
  for (const auto& [arguments, code] : {std::pair("run nope", 2),
                                        {"rnu", 2},
                                        {"topology nope", 2},
                                        {"verify --collective nope", 2},
                                        {"bench --nope", 2},
                                        {"launch -n 2 -- sh -c 'exit 3'", 3},
                                        {"run s.json --resume j", 0},
                                        {"run s.json --resume j", 0}})  // says what it takes from the journal
    for (const char* where : {"2>&-", "2>/dev/full"}) {
      const std::string command = fmt::format("{} >/dev/null {}", arguments, where);
      CAPTURE(command);
      CHECK(shell_gccl(folder.path, command) == code);
    }
}

TEST_CASE("a closed standard output is reported, and no file gets what was meant for it") {
  const Folder folder;
  folder.write("c.json", cluster(parameters()).dump());
  folder.write("s.json", small_scenario("c.json").dump());
  CHECK(shell_gccl(folder.path, "run s.json --resume j >&- 2>err") == 2);
  CHECK(read_text(folder.path / "err") == "gccl: standard output: cannot be written: Bad file descriptor\n");
  CHECK(shell_gccl(folder.path, "run s.json --resume k --json r.json <&- >&- 2>&-") == 2);
  for (const char* file : {"j", "k"}) {
    const std::string text = read_text(folder.path / file);
    CHECK(std::count(text.begin(), text.end(), '\n') == 2);
    CHECK(run_gccl({"run", "s.json", "--resume", file, "--quiet"}, folder.path).err ==
          fmt::format("gccl: {}: 1 of 1 points were finished before\n", file));
  }
  CHECK(Json::parse(read_text(folder.path / "r.json"))["ok"] == true);
}

TEST_CASE("a table of gccl bench that cannot be written is an error") {
  const Folder folder;
  const std::string bench = "bench --collective allreduce --max-bytes 64 ";
  CHECK(shell_gccl(folder.path, bench + ">/dev/full 2>err") == 2);
  CHECK(read_text(folder.path / "err") == "gccl bench: standard output: cannot be written: No space left on device\n");
  CHECK(shell_gccl(folder.path, "launch -n 2 -- '" GCCL_PROGRAM "' " + bench + ">/dev/full 2>err") == 2);
  CHECK(shell_gccl(folder.path, bench + "--json b.json >&- 2>err") == 2);
  CHECK(Json::parse(read_text(folder.path / "b.json"))["ok"] == true);
  CHECK(shell_gccl(folder.path, bench + ">out") == 0);
  CHECK(read_text(folder.path / "out").find("# wrong elements: 0\n") != std::string::npos);
}

TEST_CASE("what leads to an open descriptor is written through it and stays what it is") {
  const Folder folder;
  folder.write("c.json", cluster(parameters()).dump());
  folder.write("s.json", small_scenario("c.json").dump());
  fs::create_symlink("/dev/stdout", folder.path / "link");
  for (const char* name : {"/dev/stdout", "/proc/self/fd/1", "/dev/fd/1", "link"}) {
    CAPTURE(name);
    const auto arguments = [&](const char* option) {
      return fmt::format("run s.json {} {} 2>/dev/null >out", option, name);
    };
    CHECK(shell_gccl(folder.path, "run s.json >tables") == 0);
    CHECK(shell_gccl(folder.path, arguments("--quiet --json")) == 0);
    CHECK(Json::parse(read_text(folder.path / "out"))["ok"] == true);
    CHECK(shell_gccl(folder.path, arguments("--csv")) == 0);  // and the tables come after it
    CHECK(read_text(folder.path / "out").starts_with("index,"));
    CHECK(read_text(folder.path / "out").ends_with(read_text(folder.path / "tables")));
  }
  CHECK(fs::read_symlink(folder.path / "link") == "/dev/stdout");
  CHECK(shell_gccl(folder.path, "run s.json --json /dev/fd/7 7<s.json 2>err") == 2);
  CHECK(read_text(folder.path / "err") == "gccl: /dev/fd/7: cannot be written: Bad file descriptor\n");
}

TEST_CASE("an output that is a link is written where the link ends, with the mode that the file had") {
  const Folder folder;
  folder.write("c.json", cluster(parameters()).dump());
  folder.write("s.json", small_scenario("c.json").dump());
  fs::create_directory(folder.path / "there");
  const fs::path file = folder.write("there/r.json", "old");
  fs::permissions(file, fs::perms::owner_read | fs::perms::owner_write | fs::perms::group_read);
  fs::create_symlink("there/r.json", folder.path / "a");
  fs::create_symlink("a", folder.path / "b");
  fs::create_symlink("there/new.json", folder.path / "n");
  for (const char* name : {"a", "b", "n"})
    CHECK(run_gccl({"run", "s.json", "--quiet", "--json", name}, folder.path).code == 0);
  CHECK(fs::read_symlink(folder.path / "b") == "a");
  CHECK(Json::parse(read_text(file))["ok"] == true);
  CHECK(Json::parse(read_text(folder.path / "there/new.json"))["ok"] == true);
  CHECK(fs::status(file).permissions() == (fs::perms::owner_read | fs::perms::owner_write | fs::perms::group_read));
  fs::create_symlink("round", folder.path / "round");
  CHECK(run_gccl({"run", "s.json", "--json", "round"}, folder.path).err ==
        "gccl: round: cannot be written: Too many levels of symbolic links\n");
  CHECK(std::distance(fs::directory_iterator(folder.path / "there"), fs::directory_iterator()) == 2);
}

TEST_CASE("a limit on the size of files is an error like a full disk, and what is started has it as ever") {
  const Folder folder;
  folder.write("c.json", cluster(parameters()).dump());
  folder.write("s.json", small_scenario("c.json").dump());
  folder.write("r.json", "old");
  const auto limited = [&](std::vector<std::string> arguments) {
    return Program(std::move(arguments), {.folder = folder.path, .file_bytes_max = 1024}).wait();
  };
  const Ended e = limited({"run", "s.json", "--quiet", "--json", "r.json"});
  CHECK(e.code == 2);
  CHECK(e.err == "gccl: r.json: cannot be written: File too large\n");
  CHECK(read_text(folder.path / "r.json") == "old");
  CHECK(folder.files() == std::set<std::string>{"c.json", "r.json", "s.json"});
  CHECK(limited({"launch", "-n", "1", "--", "dd", "if=/dev/zero", "of=zeros", "bs=2048", "count=2"}).code ==
        128 + SIGXFSZ);
}

TEST_CASE("no output overwrites a file that is read, parameter sets and stored results among them") {
  const Folder folder;
  const auto write = [&](const char* name, const Json& document) { folder.write(name, document.dump()); };
  Json set = parameters();
  write("base.json", set);
  set = {{"schema", "gccl/parameters/1"}, {"name", "q"}, {"base", "base.json"}};
  write("set.json", set);
  Json two = cluster("set.json");
  write("c.json", two);
  two["name"] = "own";
  two["nodes"][0]["parameters"] = {{"base", "other.json"}};
  write("other.json", parameters());
  write("own.json", two);
  write("first.json", small_scenario({"c.json", "own.json"}));
  REQUIRE(run_gccl({"run", "first.json", "--json", "stored.json", "--quiet"}, folder.path).code == 0);
  write("s.json",
        small_scenario({"c.json", "own.json"}, {{"within_percent_of", {{"result", "stored.json"}, {"percent", 5}}}}));
  const auto contents = [&] {
    std::string all;
    for (const std::string& name : folder.files()) all += name + read_text(folder.path / name);
    return all;
  };
  const std::string before = contents();
  const auto refused = [&](const std::string& command, const std::string& file, const std::string& output) {
    const Ended e = run_gccl({command == "run" ? "run" : "topology", file, output, "./set.json"}, folder.path);
    CHECK(e.code == 2);
    CHECK(e.err.ends_with("./set.json: is read, and cannot be an output too\n"));
  };
  for (const char* output : {"--json", "--csv", "--html", "--trace"}) refused("run", "s.json", output);
  for (const char* output : {"--json", "--svg"}) refused("topology", "c.json", output);
  for (const char* file : {"base.json", "other.json", "own.json", "stored.json"}) {
    const Ended e = run_gccl({"run", "s.json", "--csv", file}, folder.path);
    CHECK(e.code == 2);
    CHECK(e.err == fmt::format("gccl: {}: is read, and cannot be an output too\n", file));
  }
  CHECK(contents() == before);
  // A shipped cluster that is named without its file.
  fs::create_directory(folder.path / "topologies");
  const fs::path shipped = folder.write("topologies/mine.json", cluster(parameters()).dump());
  write("named.json", small_scenario("mine"));
  const Ended e = run_gccl({"run", "named.json", "--csv", "topologies/mine.json"}, folder.path);
  CHECK(e.err == "gccl: topologies/mine.json: is read, and cannot be an output too\n");
  CHECK(read_text(shipped) == cluster(parameters()).dump());
}

TEST_CASE("a current folder that was removed is no internal error") {
  const Folder folder;
  folder.write("c.json", cluster(parameters()).dump());
  const std::string file = folder.write("s.json", small_scenario("c.json").dump()).string();
  fs::create_directory(folder.path / "gone");
  const auto in_it = [&](const std::string& more) {
    return shell_gccl(
        folder.path / "gone",
        fmt::format("--version >/dev/null && rmdir ../gone && '{}' run '{}' --quiet {}", GCCL_PROGRAM, file, more));
  };
  CHECK(in_it("") == 0);
  fs::create_directory(folder.path / "gone");
  CHECK(in_it(fmt::format("--json x --csv '{0}/r.csv' 2>'{0}/err'", folder.path.string())) == 2);
  CHECK(read_text(folder.path / "err").starts_with("gccl: x: cannot be written: No such file or directory"));
}

TEST_CASE("a file name that is no UTF-8 spoils no result") {
  const Folder folder;
  folder.write("c\xfe.json", cluster(parameters()).dump());
  folder.write("c.json", cluster(parameters()).dump());
  // Two clusters of one name are distinguished by their files.
  fs::create_directory(folder.path / "n\xff");
  folder.write("n\xff/c.json", cluster(parameters()).dump());
  fs::create_symlink(folder.path / "c\xfe.json", folder.path / "n\xff/d.json");
  const fs::path file = folder.write("n\xff/s.json", small_scenario({"c.json", "d.json"}).dump());
  const Ended e =
      run_gccl({"run", file.string(), "--json", "r.json", "--csv", "r.csv", "--html", "r.html"}, folder.path);
  CHECK(e.code == 0);
  CHECK(e.err.empty());
  const Json result = Json::parse(read_text(folder.path / "r.json"));
  CHECK(result["scenario"]["file"].get<std::string>().ends_with("/n\xef\xbf\xbd/s.json"));
  CHECK(result["clusters"].size() == 2);
  CHECK(run_gccl({"topology", (folder.path / "c\xfe.json").string(), "--json", "-"}, folder.path).code == 0);
  fs::create_directory(folder.path / "topologies");
  folder.write("topologies/t\xfe.json", cluster(parameters()).dump());
  CHECK(run_gccl({"list", "topologies", "--json"}, folder.path).code == 0);
}
