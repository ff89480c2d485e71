#include "launch/report/out_of_memory.hpp"

#include <unistd.h>

#include <fstream>
#include <optional>
#include <string_view>
#include <vector>

#include <fmt/format.h>

namespace col::launch {
namespace {

struct Group {
  std::string folder;
  bool unified;  // version 2 of control groups
};

// The folders of `path` and of all groups around it. In a container the path may be the one outside of it: then the
// inner folders do not exist, and the mount itself is the container's.
void add_with_ancestors(std::string_view path, const std::string& mount, bool unified, std::vector<Group>& groups) {
  // A path out of the mount leads to groups that cannot be seen.
  if (!path.starts_with('/') || path.find("/..") != std::string_view::npos) return;
  for (; path.size() > 1; path = path.substr(0, path.rfind('/')))
    groups.push_back({mount + std::string(path), unified});
  groups.push_back({mount, unified});
}

// Whether "cpu,memory" has "memory".
bool has_memory(std::string_view controllers) {
  return ("," + std::string(controllers) + ",").find(",memory,") != std::string::npos;
}

std::vector<Group> memory_groups(const OutOfMemoryWatch::Places& places) {
  std::vector<Group> version1, version2;
  std::ifstream file(places.own);
  for (std::string line; std::getline(file, line);) {
    // "0::/path" in version 2, "4:memory:/path" in version 1
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string_view path = std::string_view(line).substr(second + 1);
    if (controllers.empty()) {
      const std::string beside = places.root + "/unified";  // where version 1 has the root to itself
      const bool both = ::access((beside + "/cgroup.procs").c_str(), F_OK) == 0;
      add_with_ancestors(path, both ? beside : places.root, true, version2);
    } else if (has_memory(controllers)) {
      add_with_ancestors(path, places.root + "/memory", false, version1);
    }
  }
  // Memory is counted by one of them; where version 1 has it, it is not in version 2.
  return version1.empty() ? version2 : version1;
}

std::optional<std::uint64_t> kills_in(const std::string& path) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    constexpr std::string_view kName = "oom_kill ";
    if (!line.starts_with(kName)) continue;
    std::uint64_t count = 0;
    for (const char digit : line.substr(kName.size())) {
      if (digit < '0' || digit > '9') return std::nullopt;
      count = count * 10 + static_cast<std::uint64_t>(digit - '0');
    }
    return count;
  }
  return std::nullopt;
}

}  // namespace

OutOfMemoryWatch::OutOfMemoryWatch(const Places& places) {
  std::vector<std::string> files;
  for (const Group& group : memory_groups(places))
    files.push_back(fmt::format("{}/{}", group.folder, group.unified ? "memory.events" : "memory.oom_control"));
  files.push_back(places.machine);
  for (const std::string& file : files) {
    const std::optional<std::uint64_t> kills = kills_in(file);
    if (!kills) continue;
    file_ = file;
    claimed_ = *kills;
    return;
  }
}

std::uint64_t OutOfMemoryWatch::unclaimed() const {
  const std::uint64_t count = file_.empty() ? 0 : kills_in(file_).value_or(0);
  return count > claimed_ ? count - claimed_ : 0;
}

bool OutOfMemoryWatch::claim() {
  if (unclaimed() == 0) return false;
  ++claimed_;
  return true;
}

}  // namespace col::launch
