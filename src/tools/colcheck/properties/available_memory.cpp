#include "colcheck/properties/available_memory.hpp"

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>

namespace col::colcheck {
namespace {

// The number that a file begins with; nothing when it begins with none ("max"), or cannot be read.
std::optional<std::uint64_t> number_in(const std::string& path) {
  std::ifstream file(path);
  std::uint64_t number = 0;
  if (file >> number) return number;
  return std::nullopt;
}

std::optional<std::uint64_t> left_of_system() {
  std::ifstream file("/proc/meminfo");
  std::string key;
  std::uint64_t kibibytes = 0;
  for (std::string unit; file >> key >> kibibytes; std::getline(file, unit)) {
    if (key == "MemAvailable:") return kibibytes << 10;
  }
  return std::nullopt;
}

std::optional<std::uint64_t> left_of(const std::string& limit_path, const std::string& usage_path) {
  const auto limit = number_in(limit_path), usage = number_in(usage_path);
  if (!limit || !usage) return std::nullopt;
  return *limit > *usage ? *limit - *usage : 0;
}

// The tightest limit of the control groups that this process can see itself in: version 2, with all that contain it,
// then version 1.
std::optional<std::uint64_t> left_of_control_groups() {
  std::uint64_t left = std::numeric_limits<std::uint64_t>::max();
  const auto take = [&left](std::optional<std::uint64_t> more) { left = std::min(left, more.value_or(left)); };
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("0::")) continue;
    for (std::string path = line.substr(3);; path.resize(path.rfind('/'))) {
      const std::string folder = "/sys/fs/cgroup" + path;
      take(left_of(folder + "/memory.max", folder + "/memory.current"));
      if (path.find('/') == std::string::npos) break;
    }
  }
  const std::string first_version = "/sys/fs/cgroup/memory/memory.";
  take(left_of(first_version + "limit_in_bytes", first_version + "usage_in_bytes"));
  if (left == std::numeric_limits<std::uint64_t>::max()) return std::nullopt;
  return left;
}

}  // namespace

std::optional<std::uint64_t> available_memory() {
  const auto system = left_of_system(), groups = left_of_control_groups();
  if (!system || !groups) return system ? system : groups;
  return std::min(*system, *groups);
}

}  // namespace col::colcheck
