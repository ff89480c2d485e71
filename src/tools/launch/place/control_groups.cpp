#include "launch/place/control_groups.hpp"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <optional>

#include "launch/job/small_file.hpp"

namespace col::launch {
namespace {

bool has_part(std::string_view list, std::string_view wanted) {
  while (!list.empty()) {
    if (take(list, ',') == wanted) return true;
  }
  return false;
}

// Of a hierarchy: this process's group in it. Version 2 has one hierarchy, without names of controllers.
struct Membership {
  std::optional<std::string> version1, version2;
};

Membership memberships(std::string_view text, std::string_view controller) {
  Membership found;
  while (!text.empty()) {
    std::string_view group = take(text, '\n');
    const std::string_view hierarchy = take(group, ':');
    const std::string_view controllers = take(group, ':');
    if (hierarchy == "0" && controllers.empty()) found.version2 = group;
    if (has_part(controllers, controller)) found.version1 = group;
  }
  return found;
}

// In /proc/self/mountinfo a space is "\040", and so on.
std::string unescaped(std::string_view text) {
  std::string plain;
  for (; !text.empty(); text.remove_prefix(1)) {
    unsigned code = 0;
    const char* const end = text.data() + std::min<std::size_t>(text.size(), 4);
    if (text[0] != '\\' || text.size() < 4 || std::from_chars(text.data() + 1, end, code, 8).ptr != text.data() + 4) {
      plain += text[0];
      continue;
    }
    plain += static_cast<char>(code);
    text.remove_prefix(3);
  }
  return plain;
}

// What can be seen of the way from `group` up, where `root` of the hierarchy is mounted on `point`.
void add_directories(std::string group, const std::string& root, const std::string& point,
                     std::vector<std::string>& directories) {
  if (root != "/") {
    // A group beside or above the mounted one cannot be reached. The mounted one is then used instead, as in a
    // container that got the host's names of groups.
    const bool below = group.starts_with(root) && (group.size() == root.size() || group[root.size()] == '/');
    group = below ? group.substr(root.size()) : "";
  }
  if (group.find("/..") != std::string::npos) group.clear();
  while (group.ends_with('/')) group.pop_back();
  for (; !group.empty(); group.erase(group.rfind('/'))) directories.push_back(point + group);
  directories.push_back(point);
}

}  // namespace

std::vector<std::string> control_groups(std::string_view controller, const std::string& proc) {
  std::vector<std::string> directories;
  const std::optional<std::string> groups = read_small_file(proc + "/self/cgroup");
  if (!groups) return directories;
  const Membership member = memberships(*groups, controller);
  if (!member.version1 && !member.version2) return directories;
  const std::optional<std::string> mounts = read_small_file(proc + "/self/mountinfo");
  if (!mounts) return directories;

  for (std::string_view rest = *mounts; !rest.empty();) {
    std::string_view line = take(rest, '\n');
    const std::size_t behind = line.find(" - cgroup");
    if (behind == std::string_view::npos) continue;
    std::string_view filesystem = line.substr(behind + 3);
    const std::string_view type = take(filesystem, ' ');
    for (int field = 0; field < 3; ++field) take(line, ' ');
    const std::string root = unescaped(take(line, ' '));
    const std::string point = unescaped(take(line, ' '));
    take(filesystem, ' ');  // the source; the options of the hierarchy follow it
    if (type == "cgroup2" && member.version2) add_directories(*member.version2, root, point, directories);
    if (type == "cgroup" && member.version1 && has_part(filesystem, controller)) {
      add_directories(*member.version1, root, point, directories);
    }
  }
  return directories;
}

}  // namespace col::launch
