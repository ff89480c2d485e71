// Many groups: at once, and one after the other.
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <string>

#include <fmt/format.h>

#include "colcheck/engine/mix.hpp"
#include "colcheck/properties/list.hpp"
#include "colcheck/properties/program.hpp"

namespace col::colcheck {
namespace {

// ---- overlapping_groups: Ranks that are in several groups at once.
//
// Blocking calls are made in an order that fits into one order of all groups. Then the first group in that order that
// has not ended its call has all its ranks there, so that no circle of groups can wait for each other. Asynchronous
// calls are all started, and each rank waits for them in an order of its own: every wait moves on what is in flight in
// the other groups.

// Case::variant: the groups in addition to the group of all ranks.
enum Shape : std::uint64_t {
  kPairs,     // of each rank and the next one, around in a ring
  kChildren,  // what dup, split and subgroup make
  kShapeCount
};
constexpr int kGroupRounds = 5;

// The groups of this rank, by their place in the order of all groups; the others are false.
using Groups = std::vector<Group>;

void add_overlapping_groups(Draw& draw) {
  for (const std::string& backend : draw.backends()) {
    for (const int ranks : draw.ranks()) {
      for (std::uint64_t shape = 0; shape < kShapeCount; ++shape) {
        // The primitive is counted on by all ranks and shapes together.
        for (int repeat = 0; repeat < (draw.quick() ? 1 : 4); ++repeat)
          draw.add(backend, primitive_in_turn(draw.number()), shape, ranks);
      }
    }
  }
}

Groups make_pairs(Rank& rank) {
  Groups groups;
  for (int first = 0; first < rank.size(); ++first) {
    const int pair[] = {first, (first + 1) % rank.size()};
    groups.push_back(rank.make_group(pair));
  }
  return groups;
}

Groups make_children(Rank& rank, std::uint64_t seed) {
  Group& parent = rank.group();
  Groups groups;
  groups.push_back(parent.dup());
  groups.push_back(parent.split(rank.rank() % 2, -rank.rank()));
  // All but one, backwards.
  std::vector<int> most(static_cast<std::size_t>(rank.size()));
  std::iota(most.rbegin(), most.rend(), 0);
  most.erase(most.begin() + static_cast<std::ptrdiff_t>(seed % most.size()));
  groups.push_back(parent.subgroup(most, fmt::format("{}/most", parent.name())));
  return groups;
}

// The ranks of a child are numbered as its making said.
std::string misnumbered(const Rank& rank, const Groups& groups) {
  const int evens = (rank.size() + 1) / 2, odds = rank.size() / 2;
  const int half = rank.rank() % 2 == 0 ? evens : odds;
  const Group &copy = groups[0], &part = groups[1];
  if (copy.size() != rank.size() || copy.rank() != rank.rank())
    return fmt::format("dup: rank {} of {} is rank {} of {}", rank.rank(), rank.size(), copy.rank(), copy.size());
  if (part.size() != half || part.rank() != half - 1 - rank.rank() / 2)
    return fmt::format("split: rank {} of {} is rank {} of {}", rank.rank(), rank.size(), part.rank(), part.size());
  return {};
}

// `calls_each` calls in each group: in this order, each blocking, or all started and then waited for in this rank's own
// order.
void use_all(const Groups& groups, std::vector<Program>& programs, const std::vector<std::size_t>& order,
             int calls_each, OpenCalls& calls, std::mt19937_64& own) {
  for (int call = 0; call < calls_each; ++call) {
    for (const std::size_t g : order) {
      const Case c = programs[g].next();
      if (groups[g]) calls.start(groups[g], c);
    }
  }
  calls.end_all(own);
}

Finding run_overlapping_groups(Rank& rank, const Case& c) {
  Groups groups = c.variant == kPairs ? make_pairs(rank) : make_children(rank, c.seed);
  std::string problem = c.variant == kPairs ? std::string() : misnumbered(rank, groups);
  groups.push_back(rank.group());
  std::vector<std::size_t> order(groups.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::mt19937_64 common(mix(c.seed, 1));
  std::mt19937_64 own(mix(c.seed, 3, static_cast<std::uint64_t>(rank.rank())));
  OpenCalls calls;
  for (int round = 0; round < kGroupRounds; ++round) {
    std::shuffle(order.begin(), order.end(), common);
    std::vector<Program> programs;
    const bool asynchronous = round % 2 == 1;
    for (std::size_t g = 0; g < groups.size(); ++g) {
      const ProgramStyle style{.about = c.primitive,
                               .blocking = !asynchronous,
                               .asynchronous = asynchronous,
                               .backend = c.backend,
                               .devices = c.devices};
      // Drawn also for groups that this rank is not in, where it has no effect.
      programs.emplace_back(style, groups[g] ? groups[g].size() : 1,
                            mix(c.seed, 2 + g, static_cast<std::uint64_t>(round)));
    }
    use_all(groups, programs, order, asynchronous ? 3 : 1, calls, own);
  }
  if (problem.empty()) problem = calls.problem();
  rank.group().barrier();
  groups.pop_back();
  for (Group& group : groups) rank.drop(group);
  return Finding::of(std::move(problem));
}

// ---- churn: Groups are made and destroyed again and again, and leave nothing behind in the process that did it.

constexpr std::uint64_t kQuickGroups = 40, kFullGroups = 10'000;
constexpr std::uint64_t kWarmUp = 16;  // groups, after which caches and pools have what they need

// Case::variant is the number of groups.
void add_churn(Draw& draw) {
  for (const std::string& backend : draw.backends()) {
    // The costly run is with the smallest number of ranks alone.
    for (std::size_t i = 0; i < (draw.quick() ? 1 : draw.ranks().size()); ++i)
      draw.add(backend, Primitive::allreduce, i == 0 && !draw.quick() ? kFullGroups : kQuickGroups, draw.ranks()[i]);
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
  const GroupSpec spec = rank.spec_of_all(fmt::format("{}/churn", rank.group().name()));
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

Finding run_churn(Rank& rank, const Case& c) {
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

const Property kOverlappingGroups =
    in_group("overlapping_groups",
             "ranks that are in several groups get the right data, in whatever order they wait for calls in flight",
             &add_overlapping_groups, &run_overlapping_groups, OnGpus::buffers, 2);
const Property kChurn =
    in_group("churn", "groups made and destroyed leave no descriptors, threads, mappings, files or memory behind",
             &add_churn, &run_churn, OnGpus::nothing, 2);

}  // namespace col::colcheck
