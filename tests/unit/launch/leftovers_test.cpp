#include "launch/processes/leftovers.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "common/unique_fd.hpp"
#include "support/catch.hpp"
#include "support/temp_dir.hpp"

using namespace col::launch;

TEST_CASE("leftovers: shared memory that nobody has open is removed, everything else stays", "[launch]") {
  col::test::TempDir directory;
  const std::string stale = directory / ("col-" + std::string(32, 'a'));
  const std::string open = directory / ("col-" + std::string(32, 'b'));
  const std::vector<std::string> others = {directory / "col-abc", directory / ("col-" + std::string(33, 'a')),
                                           directory / ("col-" + std::string(32, 'g')),
                                           directory / ("xol-" + std::string(32, 'a'))};
  for (const std::string& path : others) std::ofstream(path) << "x";
  std::ofstream(stale) << "x";
  std::ofstream(open) << "x";
  const std::string link = directory / ("col-" + std::string(32, 'c'));
  std::filesystem::create_symlink(others[0], link);
  const std::string folder = directory / ("col-" + std::string(32, 'd'));
  std::filesystem::create_directory(folder);
  {
    const col::tools::UniqueFd held(::open(open.c_str(), O_RDONLY | O_CLOEXEC));
    REQUIRE(held);
    CHECK(remove_leftover_shared_memory(directory.path()) == std::vector<std::string>{stale});
  }
  CHECK_FALSE(std::filesystem::exists(stale));
  for (const std::string& path : others) CHECK(std::filesystem::exists(path));
  CHECK(std::filesystem::is_symlink(link));
  CHECK(std::filesystem::exists(folder));
  CHECK(remove_leftover_shared_memory(directory.path()) == std::vector<std::string>{open});
  CHECK(remove_leftover_shared_memory(directory / "missing").empty());
}
