#include "launch/place/cpu_quota.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <string_view>

#include "launch/job/small_file.hpp"
#include "launch/place/control_groups.hpp"
#include "launch/place/cpu_list.hpp"

namespace col::launch {
namespace {

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
