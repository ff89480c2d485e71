// A random program over several groups: blocking calls, asynchronous ones and messages, many of them in flight at once.
// One rank stops in the middle of its own code. So all others wait in the end, for it or for a rank that waits for it.
#include <algorithm>
#include <numeric>
#include <random>
#include <utility>

#include <fmt/format.h>

#include "colcheck/engine/mix.hpp"
#include "colcheck/faults/rows.hpp"

namespace col::colcheck {
namespace {

constexpr int kSteps = 24;
constexpr std::size_t kMostElements = 200;

std::uint64_t below(std::mt19937_64& random, std::uint64_t limit) {
  return random() % limit;
}

// At least two of them, in any order.
std::vector<int> some_of(std::mt19937_64& random, int ranks) {
  std::vector<int> all(static_cast<std::size_t>(ranks));
  std::iota(all.begin(), all.end(), 0);
  std::shuffle(all.begin(), all.end(), random);
  all.resize(2 + below(random, all.size() - 1));
  return all;
}

// The world, and others; false on ranks that are not in one.
std::vector<Group> make_teams(Group world, const Case& c) {
  std::mt19937_64 random(mix(c.seed, 2));
  std::vector<Group> teams = {world};
  for (std::uint64_t more = 1 + below(random, 2); more > 0; --more) {
    const std::vector<int> ranks = some_of(random, world.size());
    teams.push_back(world.subgroup(ranks, fmt::format("team {}", teams.size())));
  }
  return teams;
}

struct TangleStep {
  enum class Kind : std::uint8_t { start_collective, start_messages, blocking, barrier, wait_for_all };
  std::size_t team = 0;
  Kind kind = Kind::barrier;
  std::size_t count = 0;
};

// The same on all ranks; the last one needs them all.
std::vector<TangleStep> steps_of_tangle(const Case& c, std::size_t teams) {
  std::mt19937_64 random(mix(c.seed, 3));
  std::vector<TangleStep> steps;
  for (int i = 0; i < kSteps; ++i)
    steps.push_back(
        {below(random, teams), static_cast<TangleStep::Kind>(below(random, 5)), 1 + below(random, kMostElements)});
  steps.push_back({0, TangleStep::Kind::wait_for_all, 0});
  steps.push_back({0, TangleStep::Kind::barrier, 0});
  return steps;
}

}  // namespace

int tangled_rank(const Case& c) {
  return static_cast<int>(mix(c.seed, 1) % static_cast<std::uint64_t>(c.ranks));
}

void run_tangle(const Group& world, const Case& c, const std::function<void()>& hang) {
  using Kind = TangleStep::Kind;
  std::vector<Group> teams = make_teams(world, c);
  const std::vector<TangleStep> steps = steps_of_tangle(c, teams.size());
  const bool hangs = world.rank() == tangled_rank(c);
  const std::size_t end = hangs ? mix(c.seed, 4) % steps.size() : steps.size();
  std::vector<std::vector<std::int32_t>> buffers;  // of all calls; their memory stays in place
  std::vector<Work> works;
  for (std::size_t i = 0; i < end; ++i) {
    Group& group = teams[steps[i].team];
    if (!group) continue;
    const auto buffer = [&] { return TensorView(buffers.emplace_back(steps[i].count, group.rank())); };
    switch (steps[i].kind) {
      case Kind::start_collective: {
        const TensorView in = buffer();
        works.push_back(group.iallreduce(in, buffer()));
        break;
      }
      case Kind::start_messages:
        works.push_back(group.isend(buffer(), (group.rank() + 1) % group.size()));
        works.push_back(group.irecv(buffer(), (group.rank() + group.size() - 1) % group.size()));
        break;
      case Kind::blocking:
        group.allreduce(buffer());
        break;
      case Kind::barrier:
        group.barrier();
        break;
      case Kind::wait_for_all:  // of all groups: those who are not in this one go on
        for (Work& work : works) work.wait();
        works.clear();
        break;
    }
  }
  if (hangs) hang();
}

}  // namespace col::colcheck
