#include "launch/place/topology.hpp"

#include <fcntl.h>
#include <sys/file.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "common/numbers.hpp"
#include "common/text.hpp"
#include "core/clock/clock.hpp"
#include "launch/job/small_file.hpp"

namespace col::launch {
namespace {

std::optional<std::vector<int>> read_cpu_list(const std::string& path) {
  const std::optional<std::string> text = read_small_file(path);
  return text ? parse_cpu_list(*text) : std::nullopt;
}

// The NUMA node of every processor on line. Nodes may have gaps between their numbers, and may have memory alone.
std::map<int, int> read_nodes(const std::string& sys) {
  std::map<int, int> node_of_cpu;
  const std::string path = sys + "/devices/system/node";
  for (const std::string& name : names_in(path).value_or(std::vector<std::string>{})) {
    if (!name.starts_with("node")) continue;
    const auto node = tools::parse_whole_number(std::string_view(name).substr(4), 0, kMaxCpus);
    if (!node) continue;
    for (const int cpu : read_cpu_list(fmt::format("{}/{}/cpulist", path, name)).value_or(std::vector<int>{})) {
      node_of_cpu.emplace(cpu, *node);
    }
  }
  return node_of_cpu;
}

// Older kernels know the list by the second name only.
std::vector<int> read_siblings(const std::string& topology, int cpu) {
  for (const char* const name : {"/core_cpus_list", "/thread_siblings_list"}) {
    std::optional<std::vector<int>> siblings = read_cpu_list(topology + name);
    if (siblings && std::binary_search(siblings->begin(), siblings->end(), cpu)) return *std::move(siblings);
  }
  return {cpu};
}

// The processors that share a third-level cache with `cpu`; none if it has no such cache.
std::vector<int> read_cache(const std::string& cpu) {
  constexpr int kLastIndex = 4;  // two first-level caches, a second-level one, and one on its side
  for (int index = kLastIndex; index >= 0; --index) {
    const std::string path = fmt::format("{}/cache/index{}", cpu, index);
    const std::optional<long long> level = read_number(path + "/level");
    if (level == 3) return read_cpu_list(path + "/shared_cpu_list").value_or(std::vector<int>{});
    if (level && *level < 3) break;
  }
  return {};
}

// Virtual machines may say -1.
int number_or(const std::string& path, int otherwise) {
  const std::optional<long long> number = read_number(path);
  return number && *number >= 0 && *number <= kMaxCpus * 1024LL ? static_cast<int>(*number) : otherwise;
}

using Clock = core::Clock;

constexpr std::chrono::milliseconds kMostAtDoor{100};  // a launcher is there for a fraction of one
constexpr std::chrono::microseconds kPause{500};

// An open directory with its lock; none if another process holds that (error 0), or if it cannot be had (error).
struct Tried {
  tools::UniqueFd fd;
  int error = 0;
};

Tried try_lock(const std::string& directory) {
  tools::UniqueFd fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return {.fd = {}, .error = errno};
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) == 0) return {.fd = std::move(fd)};
  return {.fd = {}, .error = errno == EWOULDBLOCK ? 0 : errno};
}

Tried lock_until(const std::string& directory, Clock::time_point latest) {
  for (;; core::sleep_for(kPause)) {
    Tried tried = try_lock(directory);
    if (tried.fd || tried.error != 0) return tried;
    if (Clock::now() >= latest) return {.fd = {}, .error = ETIMEDOUT};
  }
}

}  // namespace

std::optional<std::vector<int>> parse_cpu_list(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  std::vector<int> cpus;
  while (true) {
    const std::size_t comma = text.find(',');
    const std::string_view part = text.substr(0, comma);
    const std::size_t dash = part.find('-');
    const auto first = tools::parse_whole_number(part.substr(0, dash), 0, kMaxCpus - 1);
    const auto last =
        dash == std::string_view::npos ? first : tools::parse_whole_number(part.substr(dash + 1), 0, kMaxCpus - 1);
    if (!first || !last || *last < *first) return std::nullopt;
    for (int cpu = *first; cpu <= *last; ++cpu) cpus.push_back(cpu);
    if (comma == std::string_view::npos) break;
    text.remove_prefix(comma + 1);
    // Many ranges that overlap must not grow without a limit.
    if (cpus.size() > static_cast<std::size_t>(2 * kMaxCpus)) return std::nullopt;
  }
  std::ranges::sort(cpus);
  cpus.erase(std::unique(cpus.begin(), cpus.end()), cpus.end());
  return cpus;
}

std::string cpu_list_text(std::span<const int> cpus) {
  return tools::ranges_text(cpus, ",");
}

std::vector<int> Topology::cpus() const {
  std::vector<int> all;
  for (const Core& core : cores) all.insert(all.end(), core.cpus.begin(), core.cpus.end());
  std::ranges::sort(all);
  return all;
}

bool Topology::has_one_package() const {
  return std::ranges::all_of(cores, [&](const Core& core) { return core.package == cores.front().package; });
}

Topology read_topology(std::span<const int> allowed, const std::string& sys) {
  const std::map<int, int> node_of_cpu = read_nodes(sys);
  Topology topology;
  std::set<int> done;
  std::map<int, int> cache_of_cpu;
  for (const int cpu : allowed) {
    if (done.contains(cpu)) continue;
    const std::string directory = fmt::format("{}/devices/system/cpu/cpu{}", sys, cpu);
    const std::string path = directory + "/topology";
    const std::vector<int> siblings = read_siblings(path, cpu);
    Core core;
    std::set_intersection(siblings.begin(), siblings.end(), allowed.begin(), allowed.end(),
                          std::back_inserter(core.cpus));
    core.threads = static_cast<int>(siblings.size());
    core.number = number_or(path + "/core_id", cpu);
    core.package = number_or(path + "/physical_package_id", 0);
    const auto node = node_of_cpu.find(cpu);
    core.node = node == node_of_cpu.end() ? 0 : node->second;
    core.first_cpu = siblings.front();
    if (!cache_of_cpu.contains(cpu)) {  // one file for all that share it
      const std::vector<int> sharing = read_cache(directory);
      for (const int other : sharing) cache_of_cpu.emplace(other, sharing.front());
      cache_of_cpu.emplace(cpu, -1);
    }
    core.cache = cache_of_cpu.at(cpu);
    done.insert(core.cpus.begin(), core.cpus.end());
    topology.cores.push_back(std::move(core));
  }
  std::ranges::sort(topology.cores, [](const Core& left, const Core& right) {
    return std::tuple(left.node, left.cpus.front()) < std::tuple(right.node, right.cpus.front());
  });
  return topology;
}

std::vector<Core> CoreLocks::take(std::span<const Core> cores) {
  const std::string directory = sys_ + "/devices/system/cpu";
  Tried door = lock_until(directory, Clock::now() + kMostAtDoor);
  error_ = door.error;
  door_ = std::move(door.fd);
  std::vector<Core> taken;
  for (const Core& core : cores) {
    if (error_ != 0) break;
    Tried tried = try_lock(fmt::format("{}/cpu{}", directory, core.first_cpu));
    error_ = tried.error;
    if (!tried.fd) continue;
    taken.push_back(core);
    locks_.emplace_back(core, std::move(tried.fd));
  }
  if (error_ == 0) return taken;
  locks_.clear();
  door_.reset();
  return {};
}

void CoreLocks::keep(std::span<const int> cpus) {
  std::erase_if(locks_, [&](const auto& lock) {
    return std::ranges::none_of(lock.first.cpus, [&](int cpu) { return std::ranges::binary_search(cpus, cpu); });
  });
  door_.reset();
}

}  // namespace col::launch
