#include "launch/report/out_of_memory.hpp"

#include <unistd.h>

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "launch/job/small_file.hpp"

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
  const std::string own = read_small_file(places.own).value_or("");
  for (std::string_view rest = own; !rest.empty();) {
    // "0::/path" in version 2, "4:memory:/path" in version 1
    std::string_view path = take(rest, '\n');
    take(path, ':');
    const std::string_view controllers = take(path, ':');
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
  const std::string text = read_small_file(path).value_or("");
  for (std::string_view rest = text; !rest.empty();) {
    std::string_view line = take(rest, '\n');
    if (take(line, ' ') != "oom_kill") continue;
    std::uint64_t count = 0;
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), count);
    return error == std::errc() && end == line.data() + line.size() ? std::optional(count) : std::nullopt;
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
