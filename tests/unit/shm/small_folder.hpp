// A folder that is soon full.
#pragma once

#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cstddef>
#include <fstream>
#include <functional>
#include <stdexcept>
#include <string>

#include <fmt/format.h>

#include "support/catch.hpp"
#include "support/temp_dir.hpp"
#include "unit/shm/shm_ranks.hpp"

namespace col::test {

// Runs `body` in a process of its own, where the files in `folder` are in a file system of that size. What it throws is
// a failure. Nothing is tested, and said, where there are no mount namespaces.
inline void check_in_small_folder(const std::string& folder, std::size_t bytes, const std::function<void()>& body) {
  RankProcess process([&] {
    const std::string ids = fmt::format("{} {} 1", ::geteuid(), ::geteuid());
    if (::unshare(CLONE_NEWNS) != 0) {
      if (::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) throw std::runtime_error("skipped");
      std::ofstream("/proc/self/uid_map") << ids;
    }
    ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr);
    const std::string size = fmt::format("size={}", bytes);
    if (::mount("tmpfs", folder.c_str(), "tmpfs", 0, size.c_str()) != 0) throw std::runtime_error("skipped");
    body();
  });
  const std::string words = process.wait().text;
  if (words.find("skipped") != std::string::npos) {
    WARN("no mount namespace here: nothing tested");
  } else {
    CHECK(words == "");
  }
}

}  // namespace col::test
