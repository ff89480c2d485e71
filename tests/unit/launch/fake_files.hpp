// What tests of the launcher share: a tree of files that stands for /proc, /sys or /dev, and what is refused.
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "launch/job/launch_error.hpp"
#include "support/catch.hpp"
#include "support/temp_dir.hpp"

namespace col::test {

class FakeFiles {
 public:
  void write(const std::string& name, const std::string& text) const {
    const std::filesystem::path path = root_ / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  const std::string& path() const { return root_.path(); }
  std::string operator/(const std::string& name) const { return root_ / name; }

 private:
  TempDir root_;
};

// The content of a file; empty if it cannot be read.
inline std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// What the LaunchError of `call` says, whose exit code is checked; empty if there is none.
template <class Call>
std::string refusal_of(int exit_code, Call call) {
  try {
    call();
  } catch (const launch::LaunchError& error) {
    CHECK(error.exit_code() == exit_code);
    return error.what();
  }
  return {};
}

}  // namespace col::test
