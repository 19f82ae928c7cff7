// Where dumps are written: any name and no other file, whole or not at all.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "gccl/gccl.h"
#include "tests/support/program.hpp"
#include "tests/support/rank_job.hpp"

using namespace ranks;

namespace {

TEST_CASE("a dump may have any name that the file system takes") {
  gccl::test::Folder folder;
  check({.size = 1}, [&](int) {
    GCCL_Comm world = begin();
    std::string wide;
    while (wide.size() < 250) wide += "\u00e9";  // of two bytes each
    for (const std::string& name : {std::string(200, 'a'), std::string(255, 'b'), wide, wide + "c"}) {
      const std::filesystem::path path = folder.path / name;
      RANK_SUCCESS(GCCL_Dump(world, path.c_str()));
      RANK_CHECK(std::filesystem::file_size(path) > 0);
    }
    expect(GCCL_Dump(world, (folder.path / std::string(256, 'd')).c_str()), GCCL_ERR_SYSTEM, "too long a name");
    expect_text("File name too long", "why");
    RANK_CHECK(std::distance(std::filesystem::directory_iterator(folder.path), {}) == 4);
    RANK_SUCCESS(GCCL_Finalize());
  });
}

TEST_CASE("a dump never takes the place of a device, a pipe or a link") {
  gccl::test::Folder folder;
  const std::string pipe = folder.path / "pipe", full = folder.path / "full";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  std::filesystem::create_symlink("/dev/full", full);
  check({.size = 1}, [&](int) {
    GCCL_Comm world = begin();
    expect(GCCL_Dump(world, pipe.c_str()), GCCL_ERR_SYSTEM, "a pipe that nobody reads");
    const int reader = ::open(pipe.c_str(), O_RDWR);
    RANK_SUCCESS(GCCL_Dump(world, pipe.c_str()));
    char first = 0;
    RANK_CHECK(std::filesystem::is_fifo(pipe) && ::read(reader, &first, 1) == 1 && first == '\x80');
    expect(GCCL_Dump(world, full.c_str()), GCCL_ERR_SYSTEM, "a full disk");
    expect_text("No space left on device", "why");
    RANK_CHECK(std::filesystem::is_symlink(full));
    RANK_SUCCESS(GCCL_Finalize());
  });
}

// By a limit of what a file may hold.
TEST_CASE("a rank that is killed while it writes a dump leaves nothing that the ranks' prefix matches") {
  gccl::test::Folder folder;
  const std::string path = folder.path / "fr_0";
  const std::vector<End> ends = run({.size = 1}, [&](int) {
    GCCL_Comm world = begin();
    const rlimit none{.rlim_cur = 16, .rlim_max = RLIM_INFINITY};
    RANK_CHECK(::setrlimit(RLIMIT_FSIZE, &none) == 0);
    (void)GCCL_Dump(world, path.c_str());  // SIGXFSZ
  });
  CHECK(ends[0].signal == SIGXFSZ);
  std::vector<std::string> visible, drafts;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path)) {
    const std::string name = entry.path().filename();
    (name.starts_with("fr_") ? visible : drafts).push_back(name);
  }
  CHECK(visible.empty());
  REQUIRE(drafts.size() == 1);
  CHECK(drafts[0].starts_with(".fr_0."));
}

TEST_CASE("a folder for dumps that does not exist is an error at the start, and one that is a file") {
  gccl::test::Folder folder;
  std::ofstream(folder.path / "file");
  for (const char* place : {"gone/fr_", "gone/", "file/fr_"}) {
    const std::string prefix = folder.path / place;
    check({.size = 1, .environment = {{"GCCL_DUMP", prefix}}}, [&](int) {
      GCCL_Comm world = nullptr;
      expect(GCCL_Init(&world, nullptr), GCCL_ERR_INVALID_ARGUMENT, "init");
      expect_text(prefix.substr(0, prefix.rfind('/')), "the folder");
    });
  }
  const std::string prefix = folder.path / "";  // each rank's number alone
  check({.size = 1, .environment = {{"GCCL_DUMP", prefix}}}, [&](int) {
    begin();
    GCCL_Finalize();
  });
}

}  // namespace
