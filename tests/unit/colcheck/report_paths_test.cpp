#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "colcheck/options.hpp"
#include "common/unique_fd.hpp"
#include "common/write_file.hpp"
#include "support/catch.hpp"
#include "support/temp_dir.hpp"

using namespace col::colcheck;
namespace tools = col::tools;

namespace {

std::string read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::size_t entries(const std::string& directory) {
  const std::filesystem::directory_iterator first(directory);
  return static_cast<std::size_t>(std::distance(begin(first), end(first)));
}

std::string path_complaint(const Options& options) {
  try {
    check_report_paths(options);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "nothing";
}

}  // namespace

TEST_CASE("report paths: a look at them changes nothing", "[colcheck]") {
  const col::test::TempDir directory;
  std::ofstream(directory / "old.xml") << "old";
  CHECK(path_complaint({.junit = directory / "old.xml", .json = directory / "new.json", .html = "/dev/null"}) ==
        "nothing");
  CHECK(read(directory / "old.xml") == "old");
  CHECK(entries(directory.path()) == 1);
  CHECK(path_complaint({}) == "nothing");
}

TEST_CASE("report paths: where no file can be is said, with the reason", "[colcheck]") {
  const col::test::TempDir directory;
  std::ofstream(directory / "file") << "x";
  const std::string end = "; name a file that can be written";
  const std::string missing = directory / "none/r.xml";
  CHECK(path_complaint({.junit = missing}) == "--junit: cannot write " + missing + ": No such file or directory" + end);
  CHECK(path_complaint({.json = directory.path()}) ==
        "--json: cannot write " + directory.path() + ": Is a directory" + end);
  const std::string below = directory / "file/r.html";
  CHECK(path_complaint({.html = below}) == "--html: cannot write " + below + ": Not a directory" + end);
  const std::string same = directory / "r";
  CHECK(path_complaint({.junit = same, .html = directory / "./r"}) ==
        "--junit and --html name the same file, " + directory.path() + "/./r; give each its own");
  CHECK(entries(directory.path()) == 1);
}

TEST_CASE("report paths: a directory that takes no files is said", "[colcheck]") {
  const col::test::TempDir directory;
  // Not even root can make files here.
  const std::string path = "/proc/self/report.xml";
  CHECK(path_complaint({.junit = path}).starts_with("--junit: cannot write " + path + ": "));
  if (::geteuid() == 0) return;
  std::ofstream(directory / "old") << "old";
  REQUIRE(::chmod((directory / "old").c_str(), 0400) == 0);
  CHECK(path_complaint({.json = directory / "old"}).find("Permission denied") != std::string::npos);
}

TEST_CASE("write file: replaces what was there, as a whole", "[colcheck]") {
  const col::test::TempDir directory;
  const std::string path = directory / "r";
  const std::string content(1 << 20, 'x');
  tools::write_file(path, "a longer text that must not shine through");
  tools::write_file(path, std::string("a\0b", 3));
  CHECK(read(path) == std::string("a\0b", 3));
  tools::write_file(path, content);
  CHECK(read(path) == content);
  tools::write_file(path, "");
  CHECK(read(path).empty());
  CHECK(entries(directory.path()) == 1);
}

TEST_CASE("write file: a symbolic link stays one", "[colcheck]") {
  const col::test::TempDir directory;
  std::filesystem::create_directory(directory / "d");
  std::filesystem::create_symlink("d/target", directory / "link");
  for (const char* text : {"first", "second"}) {  // the target is made, then replaced
    tools::write_file(directory / "link", text);
    CHECK(std::filesystem::is_symlink(directory / "link"));
    CHECK(read(directory / "d/target") == text);
  }
  CHECK(entries(directory / "d") == 1);
}

TEST_CASE("write file: on failure what was there stays, and nothing else", "[colcheck]") {
  const col::test::TempDir directory;
  CHECK_THROWS_AS(tools::write_file(directory / "none/r", "x"), tools::WriteError);
  CHECK_THROWS_AS(tools::write_file(directory.path(), "x"), tools::WriteError);
  CHECK_THROWS_WITH(tools::write_file("/dev/full", "x"), "cannot write /dev/full: No space left on device");
  CHECK(entries(directory.path()) == 0);
}

TEST_CASE("write file: a FIFO is written to, and nobody waits for its reader", "[colcheck]") {
  const col::test::TempDir directory;
  const std::string path = directory / "fifo";
  REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  CHECK_NOTHROW(tools::check_writable(path));
  CHECK_THROWS_AS(tools::write_file(path, "x"), tools::WriteError);
  const col::tools::UniqueFd reader(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  REQUIRE(reader);
  tools::write_file(path, "report");
  std::string text(16, '\0');
  REQUIRE(::read(reader.get(), text.data(), text.size()) == 6);
  CHECK(text.starts_with("report"));
}
