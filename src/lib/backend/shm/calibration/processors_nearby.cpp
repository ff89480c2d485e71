#include "backend/shm/calibration/processors_nearby.hpp"

#include <algorithm>
#include <charconv>
#include <fstream>

#include <fmt/format.h>

namespace col::shm_backend {
namespace {

cpu_set_t none() noexcept {
  cpu_set_t set;
  CPU_ZERO(&set);
  return set;
}

cpu_set_t read_list(const std::string& path) {
  std::string line;
  std::getline(std::ifstream(path), line);
  return processors_in(line);
}

constexpr const char* kLastCache = "/cache/index3";

// "32768K". 0: nothing of the kind.
std::size_t read_size(const std::string& path) {
  std::size_t size = 0;
  char unit = ' ';
  std::ifstream(path) >> size >> unit;
  return unit == 'K' ? size << 10 : unit == 'M' ? size << 20 : 0;
}

}  // namespace

cpu_set_t processors_in(std::string_view list) noexcept {
  cpu_set_t set = none();
  while (!list.empty()) {
    const std::string_view range = list.substr(0, list.find(','));
    list.remove_prefix(std::min(range.size() + 1, list.size()));
    int first = 0;
    const char* const end = range.data() + range.size();
    auto read = std::from_chars(range.data(), end, first);
    int last = first;
    if (read.ec != std::errc() || first < 0) return none();
    if (read.ptr != end && *read.ptr == '-') read = std::from_chars(read.ptr + 1, end, last);
    if (read.ec != std::errc() || read.ptr != end) return none();
    for (int cpu = first; cpu <= std::min(last, CPU_SETSIZE - 1); ++cpu) CPU_SET(static_cast<std::size_t>(cpu), &set);
  }
  return set;
}

cpu_set_t processors_beside(int own, const std::string& topology) {
  // The kernel cuts this to what the control group allows.
  cpu_set_t all = none();
  for (std::size_t cpu = 0; cpu < CPU_SETSIZE; ++cpu) CPU_SET(cpu, &all);
  ::sched_setaffinity(0, sizeof all, &all);
  if (::sched_getaffinity(0, sizeof all, &all) != 0 || own < 0 || own >= CPU_SETSIZE) return none();
  const std::string folder = fmt::format("{}/cpu{}", topology, own);
  CPU_CLR(static_cast<std::size_t>(own), &all);
  cpu_set_t found = all, wanted = none();
  const auto narrow = [&](const cpu_set_t& to) {
    if (CPU_COUNT(&to) > 0) found = to;
  };
  const cpu_set_t same_core = read_list(folder + "/topology/thread_siblings_list");
  wanted = none();
  CPU_AND(&wanted, &found, &same_core);
  CPU_XOR(&wanted, &found, &wanted);
  narrow(wanted);
  const cpu_set_t same_cache = read_list(folder + kLastCache + "/shared_cpu_list");
  CPU_AND(&wanted, &found, &same_cache);
  narrow(wanted);
  return found;
}

std::size_t last_caches_of(int processors, int one, const std::string& topology) {
  const std::string folder = fmt::format("{}/cpu{}{}", topology, one, kLastCache);
  const cpu_set_t sharing = read_list(folder + "/shared_cpu_list");
  const auto each = static_cast<std::size_t>(std::max(1, CPU_COUNT(&sharing)));
  std::size_t size = read_size(folder + "/size");
  if (const std::size_t second = read_size(fmt::format("{}/cpu{}/cache/index2/size", topology, one)))
    size = std::min(size, kMostSecondLevels * second * each);
  return size * ((static_cast<std::size_t>(processors) + each - 1) / each);
}

}  // namespace col::shm_backend
