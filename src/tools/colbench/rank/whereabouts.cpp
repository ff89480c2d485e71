#include "colbench/rank/whereabouts.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

#include "common/gpu.hpp"
#include "common/unique_fd.hpp"
#include "launch/place/cpu_quota.hpp"

namespace col::colbench {
namespace {

using Text = std::array<char, 64>;

Text read_text(const char* path) {
  Text text = {};
  const tools::UniqueFd file(::open(path, O_RDONLY | O_CLOEXEC));
  if (file && ::read(file.get(), text.data(), text.size() - 1) < 0) return {};
  return text;
}

Text read_namespace(const char* path) {
  Text text = {};
  if (::readlink(path, text.data(), text.size() - 1) < 0) return {};
  return text;
}

bool share_network(const Whereabouts& a, const Whereabouts& b) {
  return share_host(a, b) && a.network_namespace == b.network_namespace;
}

// The first of `ranks` that `same` says to be with this one.
template <class Same>
std::size_t first_with(std::span<const Whereabouts> ranks, const Whereabouts& one, Same same) {
  const auto found =
      std::find_if(ranks.begin(), ranks.end(), [&](const Whereabouts& other) { return same(other, one); });
  return static_cast<std::size_t>(found - ranks.begin());
}

}  // namespace

Whereabouts own_whereabouts(int gpu) {
  Whereabouts own;
  if (gpu >= 0) tools::facts_of_gpu(gpu).text().copy(own.gpu.data(), own.gpu.size() - 1);
  own.boot = read_text("/proc/sys/kernel/random/boot_id");
  own.network_namespace = read_namespace("/proc/self/ns/net");
  own.pid_namespace = read_namespace("/proc/self/ns/pid");
  CPU_ZERO(&own.cpus);
  if (::sched_getaffinity(0, sizeof own.cpus, &own.cpus) != 0) CPU_ZERO(&own.cpus);
  own.cpu_count = launch::usable_cpus();
  return own;
}

std::string gpus_of(std::span<const Whereabouts> ranks) {
  std::vector<tools::RankOnGpu> all;
  for (const Whereabouts& rank : ranks) all.push_back({rank.boot.data(), rank.gpu.data()});
  return ranks.empty() || ranks.front().gpu[0] == '\0' ? "" : tools::gpus_by_rank(all);
}

bool share_host(const Whereabouts& a, const Whereabouts& b) {
  return a.boot == b.boot;
}

bool share_processes(const Whereabouts& a, const Whereabouts& b) {
  return share_host(a, b) && a.pid_namespace == b.pid_namespace;
}

std::vector<int> nodes_of(std::span<const Whereabouts> ranks) {
  std::vector<int> nodes;
  int known = 0;
  for (const Whereabouts& rank : ranks) {
    const std::size_t first = first_with(ranks, rank, share_network);
    nodes.push_back(first < nodes.size() ? nodes[first] : known++);
  }
  return nodes;
}

cpu_set_t cores_beside(std::span<const Whereabouts> ranks, const Whereabouts& one) {
  cpu_set_t all;
  CPU_ZERO(&all);
  for (const Whereabouts& rank : ranks) {
    if (share_host(rank, one)) CPU_OR(&all, &all, &rank.cpus);
  }
  return all;
}

int cpus_of(std::span<const Whereabouts> ranks) {
  int cpus = 0;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (first_with(ranks, ranks[i], share_host) != i) continue;
    const cpu_set_t all = cores_beside(ranks, ranks[i]);
    int uncounted = 0;
    for (const Whereabouts& rank : ranks) {
      if (share_host(rank, ranks[i]) && CPU_COUNT(&rank.cpus) == 0) uncounted = std::max(uncounted, rank.cpu_count);
    }
    cpus += std::max(CPU_COUNT(&all), uncounted);
  }
  return std::max(1, cpus);
}

}  // namespace col::colbench
