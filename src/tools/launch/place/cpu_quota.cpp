#include "launch/place/cpu_quota.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <optional>
#include <string_view>

#include "launch/job/small_file.hpp"
#include "launch/place/topology.hpp"

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

std::optional<double> ratio(long long quota_us, long long period_us) {
  if (quota_us <= 0 || period_us <= 0) return std::nullopt;  // -1: no limit
  return static_cast<double>(quota_us) / static_cast<double>(period_us);
}

// "150000 100000", or "max 100000".
std::optional<double> quota_of_version2(const std::string& directory) {
  const std::optional<std::string> text = read_small_file(directory + "/cpu.max");
  if (!text) return std::nullopt;
  const char* const end = text->data() + text->size();
  long long quota = 0;
  long long period = 0;
  const auto first = std::from_chars(text->data(), end, quota);
  if (first.ec != std::errc() || first.ptr == end) return std::nullopt;
  const auto second = std::from_chars(first.ptr + 1, end, period);
  return second.ec == std::errc() ? ratio(quota, period) : std::nullopt;
}

std::optional<double> quota_of_version1(const std::string& directory) {
  const auto quota = read_number(directory + "/cpu.cfs_quota_us");
  if (!quota || *quota <= 0) return std::nullopt;
  const auto period = read_number(directory + "/cpu.cfs_period_us");
  return period ? ratio(*quota, *period) : std::nullopt;
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

std::vector<int> allowed_cpus() {
  // The kernel refuses a mask that is shorter than its own with EINVAL, and does not say how long that is.
  for (int size = 1024; size <= kMaxCpus; size *= 2) {
    std::vector<unsigned long> words(CPU_ALLOC_SIZE(size) / sizeof(unsigned long));
    auto* mask = reinterpret_cast<cpu_set_t*>(words.data());
    const std::size_t bytes = words.size() * sizeof(unsigned long);
    if (::sched_getaffinity(0, bytes, mask) == 0) {
      std::vector<int> cpus;
      for (int cpu = 0; cpu < size; ++cpu) {
        if (CPU_ISSET_S(static_cast<unsigned>(cpu), bytes, mask)) cpus.push_back(cpu);
      }
      return cpus;
    }
    if (errno != EINVAL) break;
  }
  std::vector<int> all(static_cast<std::size_t>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN))));
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int>(i);
  return all;
}

std::vector<int> offered_cpus(const std::string& proc, const std::string& sys) {
  std::vector<std::string> lists;
  for (const std::string& directory : control_groups("cpuset", proc)) {
    // Version 2; version 1, where the second one may be wider than what the group's ancestors leave it.
    for (const char* const name : {"/cpuset.cpus.effective", "/cpuset.effective_cpus", "/cpuset.cpus"})
      lists.push_back(directory + name);
  }
  lists.push_back(sys + "/devices/system/cpu/online");
  for (const std::string& path : lists) {
    const std::optional<std::string> text = read_small_file(path);
    if (auto cpus = text ? parse_cpu_list(*text) : std::nullopt) return *std::move(cpus);
  }
  return {};
}

std::optional<double> cpu_quota(const std::string& proc) {
  std::optional<double> least;
  for (const std::string& directory : control_groups("cpu", proc)) {
    for (const auto& quota : {quota_of_version2(directory), quota_of_version1(directory)}) {
      if (quota && (!least || *quota < *least)) least = quota;
    }
  }
  return least;
}

int usable_cpus(int cpus, std::optional<double> quota) noexcept {
  if (quota && *quota < cpus) cpus = static_cast<int>(std::ceil(*quota));
  return std::max(1, cpus);
}

int usable_cpus() {
  return usable_cpus(static_cast<int>(allowed_cpus().size()), cpu_quota());
}

}  // namespace col::launch
