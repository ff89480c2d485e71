// Groups are made and destroyed again and again, and leave nothing behind in the process that did it.
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include <unistd.h>

#include <fmt/format.h>

#include "colcheck/engine/mix.hpp"
#include "colcheck/properties/list.hpp"
#include "colcheck/properties/program.hpp"

namespace col::colcheck {
namespace {

constexpr std::uint64_t kQuickGroups = 40, kFullGroups = 10'000;
constexpr std::uint64_t kWarmUp = 16;  // groups, after which caches and pools have what they need

// Case::variant is the number of groups.
void cases(const Selection& selection, std::vector<Case>& all) {
  const bool quick = selection.effort == Effort::quick;
  const auto ranks = ranks_for_sequences(selection, 2);
  if (ranks.empty() || !selection.wants_algorithm("")) return;
  std::size_t number = 0;
  for (const std::string& backend : selection.backends) {
    // The costly run is with the smallest number of ranks alone.
    for (std::size_t i = 0; i < (quick ? 1 : ranks.size()); ++i) {
      Case c;
      c.property = "churn";
      c.backend = backend;
      c.ranks = ranks[i];
      c.primitive = Primitive::allreduce;
      c.variant = i == 0 && !quick ? kFullGroups : kQuickGroups;
      c.seed = mix(selection.seed, 58, ++number);
      all.push_back(std::move(c));
    }
  }
}

// What a process holds, and what growth of it is no leak.
struct Holding {
  const char* what;
  std::uint64_t amount;
  std::uint64_t allowed;
};

std::uint64_t entries(const char* directory) {
  std::uint64_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(directory)) ++count;
  return count;
}

// Files of the library's that have a name. Other programs have theirs there, too.
std::uint64_t shared_files() {
  std::uint64_t count = 0;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm", none))
    count += entry.path().filename().string().starts_with("col") ? 1 : 0;
  return count;
}

std::uint64_t mappings() {
  std::ifstream maps("/proc/self/maps");
  return static_cast<std::uint64_t>(
      std::count(std::istreambuf_iterator<char>(maps), std::istreambuf_iterator<char>(), '\n'));
}

std::uint64_t resident_bytes() {
  std::uint64_t size = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> size >> resident;
  return resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

// AddressSanitizer keeps back what is freed, up to 256 MiB of it, to find later uses.
#if defined(__SANITIZE_ADDRESS__)
constexpr std::uint64_t kKeptBack = std::uint64_t{256} << 20;
#else
constexpr std::uint64_t kKeptBack = 0;
#endif

// The store keeps a few descriptors for its next wait, and the allocator asks for memory, and maps it, in large pieces.
std::vector<Holding> holdings() {
  return {{"descriptors", entries("/proc/self/fd"), 5},
          {"threads", entries("/proc/self/task"), 0},
          {"mappings", mappings(), 16},
          {"files in /dev/shm", shared_files(), 0},
          {"resident bytes", resident_bytes(), (1 << 20) + kKeptBack}};
}

// When no rank of the case makes a group.
std::vector<Holding> holdings_in_peace(Group& group) {
  group.barrier();
  std::vector<Holding> now = holdings();
  group.barrier();
  return now;
}

std::string make_and_destroy(Rank& rank, const Case& c, std::uint64_t times) {
  const GroupSpec spec{.name = fmt::format("{}/churn", rank.group().name()),
                       .rank = rank.rank(),
                       .world_size = rank.size(),
                       .backend_name = c.backend,
                       .timeout = rank.timeout()};
  for (std::uint64_t i = 0; i < times; ++i) {
    Group group = rank.context().init_group(spec);
    std::vector<std::uint64_t> data{mix(c.seed, i), static_cast<std::uint64_t>(rank.rank())};
    group.broadcast(TensorView(data).slice(0, 1));
    group.allreduce(TensorView(data).slice(1, 1));
    rank.context().destroy_group(spec.name);
    const auto n = static_cast<std::uint64_t>(rank.size());
    if (data[0] != mix(c.seed, i) || data[1] != n * (n - 1) / 2) return fmt::format("wrong data in group {}", i);
  }
  return {};
}

Finding run(Rank& rank, const Case& c) {
  std::string problem = make_and_destroy(rank, c, kWarmUp);
  const std::vector<Holding> before = holdings_in_peace(rank.group());
  const std::string later = make_and_destroy(rank, c, c.variant);
  const std::vector<Holding> after = holdings_in_peace(rank.group());
  if (problem.empty()) problem = later;
  for (std::size_t i = 0; problem.empty() && i < before.size(); ++i) {
    if (after[i].amount > before[i].amount + before[i].allowed)
      problem = fmt::format("{} groups later, {} have grown from {} to {}", c.variant, before[i].what, before[i].amount,
                            after[i].amount);
  }
  return Finding::of(std::move(problem));
}

}  // namespace

const Property kChurn{"churn",
                      "groups made and destroyed leave no descriptors, threads, mappings, files or memory behind",
                      Property::Kind::group, &cases, &run};

}  // namespace col::colcheck
