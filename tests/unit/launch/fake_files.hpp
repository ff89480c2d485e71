// A tree of files that stands for /proc, /sys or /dev.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

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

}  // namespace col::test
