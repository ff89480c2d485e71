// Ranks that are in several groups at once.
//
// Blocking calls are made in an order that fits into one order of all groups. Then the first group in that order that
// has not ended its call has all its ranks there, so that no circle of groups can wait for each other. Asynchronous
// calls are all started, and each rank waits for them in an order of its own: every wait moves on what is in flight in
// the other groups.
#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "colcheck/engine/mix.hpp"
#include "colcheck/properties/list.hpp"
#include "colcheck/properties/program.hpp"

namespace col::colcheck {
namespace {

// Case::variant: the groups in addition to the group of all ranks.
enum Shape : std::uint64_t {
  kPairs,     // of each rank and the next one, around in a ring
  kChildren,  // what dup, split and subgroup make
  kShapeCount
};
constexpr int kRounds = 5;

// The groups of this rank, by their place in the order of all groups; the others are false.
using Groups = std::vector<Group>;

void cases(const Selection& selection, std::vector<Case>& all) {
  const bool quick = selection.effort == Effort::quick;
  if (!selection.wants_algorithm("")) return;
  std::size_t number = 0;
  for (const std::string& backend : selection.backends) {
    for (const int ranks : ranks_for_sequences(selection, 2)) {
      for (std::uint64_t shape = 0; shape < kShapeCount; ++shape) {
        for (int repeat = 0; repeat < (quick ? 1 : 4); ++repeat) {
          Case c;
          c.property = "overlapping_groups";
          c.backend = backend;
          c.ranks = ranks;
          c.variant = shape;
          // Counted on by all primitives together.
          c.primitive = static_cast<Primitive>(number % kPrimitiveCount);
          c.seed = mix(selection.seed, 53, ++number);
          all.push_back(std::move(c));
        }
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

Finding run(Rank& rank, const Case& c) {
  if (rank.size() < 2) return Finding::skip("it takes two ranks");
  Groups groups = c.variant == kPairs ? make_pairs(rank) : make_children(rank, c.seed);
  std::string problem = c.variant == kPairs ? std::string() : misnumbered(rank, groups);
  groups.push_back(rank.group());
  std::vector<std::size_t> order(groups.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::mt19937_64 common(mix(c.seed, 1));
  std::mt19937_64 own(mix(c.seed, 3, static_cast<std::uint64_t>(rank.rank())));
  OpenCalls calls;
  for (int round = 0; round < kRounds; ++round) {
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

}  // namespace

const Property kOverlappingGroups{
    "overlapping_groups",
    "ranks that are in several groups get the right data, in whatever order they wait for calls in flight",
    Property::Kind::group,
    &cases,
    &run,
    OnGpus::buffers};

}  // namespace col::colcheck
