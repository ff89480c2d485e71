#include "core/control_group.hpp"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <system_error>

#include <fmt/format.h>

namespace col::core {
namespace {

// Whether `names`, as "cpu,cpuacct", has `wanted`.
bool lists(std::string_view names, std::string_view wanted) {
  while (!names.empty()) {
    const std::size_t comma = std::min(names.find(','), names.size());
    if (names.substr(0, comma) == wanted) return true;
    names.remove_prefix(std::min(comma + 1, names.size()));
  }
  return false;
}

// `path` is the group's below `mount`. Where only a container's own group is mounted, and the path is the one outside
// of it, the inner folders do not exist, and the mount itself is the container's.
void add_with_ancestors(std::string_view path, const std::string& mount, bool unified,
                        std::vector<ControlGroup>& groups) {
  // A path out of the mount leads to groups that cannot be seen.
  if (!path.starts_with('/') || path.find("/..") != std::string_view::npos) return;
  while (!path.empty() && path != "/") {
    groups.emplace_back(mount + std::string(path), unified);
    path = path.substr(0, path.rfind('/'));
  }
  groups.emplace_back(mount, unified);
}

}  // namespace

std::string ControlGroup::word(std::string_view file) const {
  std::ifstream stream(fmt::format("{}/{}", folder_, file));
  std::string word;
  stream >> word;
  return word;
}

std::optional<std::uint64_t> ControlGroup::number(std::string_view file) const {
  const std::string text = word(file);
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::vector<ControlGroup> control_groups(std::string_view controller, const ControlGroupPlaces& places) {
  std::vector<ControlGroup> groups;
  // "0::/path" in version 2, "4:memory:/path" in version 1; a machine may have both.
  std::ifstream file(places.own);
  for (std::string line; std::getline(file, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string_view names = std::string_view(line).substr(first + 1, second - first - 1);
    const std::string_view path = std::string_view(line).substr(second + 1);
    if (names.empty()) {
      const std::string beside = places.root + "/unified";  // where version 1 has the root to itself
      const bool both = ::access((beside + "/cgroup.procs").c_str(), F_OK) == 0;
      add_with_ancestors(path, both ? beside : places.root, true, groups);
    } else if (lists(names, controller)) {
      add_with_ancestors(path, fmt::format("{}/{}", places.root, controller), false, groups);
    }
  }
  return groups;
}

std::optional<double> processor_quota(const ControlGroupPlaces& places) {
  std::optional<double> least;
  for (const ControlGroup& group : control_groups("cpu", places)) {
    double time = 0, period = 0;
    if (group.unified()) {
      // "max 100000", or "150000 100000"
      std::ifstream file(group.folder() + "/cpu.max");
      if (!(file >> time >> period)) continue;
    } else {
      time = static_cast<double>(group.number("cpu.cfs_quota_us").value_or(0));  // -1: no limit
      period = static_cast<double>(group.number("cpu.cfs_period_us").value_or(0));
    }
    if (time <= 0 || period <= 0) continue;
    least = std::min(least.value_or(time / period), time / period);
  }
  return least;
}

}  // namespace col::core
