// The drill: every rank that waits for the one that hangs, directly or through other ranks, names it when the timeout
// has passed. It computes forever (Case::variant 0), or is stopped (1).
#include "colcheck/faults/rank_drills.hpp"

#include <algorithm>
#include <csignal>
#include <numeric>
#include <random>
#include <utility>

#include <fmt/format.h>

#include "colcheck/engine/mix.hpp"
#include "colcheck/faults/judge.hpp"
#include "colcheck/properties/list.hpp"

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

}  // namespace

struct Tangle::Step {
  enum class Kind : std::uint8_t { start_collective, start_messages, blocking, barrier, wait_for_all };
  std::size_t team = 0;
  Kind kind = Kind::barrier;
  std::size_t count = 0;
};

int Tangle::victim(std::uint64_t seed, int ranks) {
  return static_cast<int>(mix(seed, 1) % static_cast<std::uint64_t>(ranks));
}

Tangle::Tangle(Group world, std::uint64_t seed, Duration timeout) : seed_(seed), timeout_(timeout) {
  std::mt19937_64 random(mix(seed, 2));
  std::vector<int> all(static_cast<std::size_t>(world.size()));
  std::iota(all.begin(), all.end(), 0);
  teams_.push_back({all, world});
  for (std::uint64_t more = 1 + below(random, 2); more > 0; --more) {
    Team team{some_of(random, world.size()), {}};
    team.group = world.subgroup(team.ranks, fmt::format("team {}", teams_.size()));
    teams_.push_back(std::move(team));
  }
}

// The same on all ranks; the last one needs them all.
std::vector<Tangle::Step> Tangle::steps() const {
  std::mt19937_64 random(mix(seed_, 3));
  std::vector<Step> steps;
  for (int i = 0; i < kSteps; ++i)
    steps.push_back(
        {below(random, teams_.size()), static_cast<Step::Kind>(below(random, 5)), 1 + below(random, kMostElements)});
  steps.push_back({0, Step::Kind::wait_for_all, 0});
  steps.push_back({0, Step::Kind::barrier, 0});
  return steps;
}

void Tangle::run(const std::function<void()>& hang) {
  const std::vector<Step> program = steps();
  const Group& world = teams_.front().group;
  const bool is_victim = world.rank() == victim(seed_, world.size());
  const std::size_t end = is_victim ? mix(seed_, 4) % program.size() : program.size();
  std::vector<Work> works;
  for (std::size_t i = 0; i < end; ++i) {
    if (teams_[program[i].team].group) run(program[i], works);
  }
  if (is_victim) hang();
}

void Tangle::run(const Step& step, std::vector<Work>& works) {
  using Kind = Step::Kind;
  Group& group = teams_[step.team].group;
  const auto buffer = [&] { return TensorView(buffers_.emplace_back(step.count, group.rank())); };
  const Options options{.timeout = timeout_};
  switch (step.kind) {
    case Kind::start_collective: {
      const TensorView in = buffer();
      works.push_back(group.iallreduce(in, buffer(), options));
      return;
    }
    case Kind::start_messages:
      works.push_back(group.isend(buffer(), (group.rank() + 1) % group.size(), options));
      works.push_back(group.irecv(buffer(), (group.rank() + group.size() - 1) % group.size(), options));
      return;
    case Kind::blocking:
      return group.allreduce(buffer(), options);
    case Kind::barrier:
      return group.barrier(options);
    case Kind::wait_for_all:  // of all groups: those who are not in this one go on
      for (Work& work : works) work.wait();
      works.clear();
      return;
  }
}

// ---- The property

namespace {

enum Way : std::uint64_t { kComputes, kIsStopped };
// Seconds: how late they are is judged elsewhere.
constexpr double kHungPatience = 10;

void add_hung(const Selection& selection, std::vector<Case>& all) {
  std::vector<int> sizes = drill_ranks(selection, 3);
  const bool full = selection.effort == Effort::full;
  if (full && !sizes.empty()) sizes = {3, 4, 5, 6, 8};
  DrillCases drills(selection, "hung", sizes, all);
  for (const std::string& backend : drills.backends()) {
    for (int repeat = 0; repeat < (full ? 25 : 4); ++repeat) {
      Case& c = drills.add(backend, Primitive::barrier);
      c.seed = mix(selection.seed, 61, drills.number());
      c.variant = drills.number() % 4 == 0 ? kIsStopped : kComputes;
    }
  }
}

Finding run_hung(Rank& /*rank*/, const Case& c) {
  const int victim = Tangle::victim(c.seed, c.ranks);
  Job job(spec_of({.c = c, .odd = victim, .oddity = Drill::Oddity::hangs}));
  job.await_point(victim, "away");
  if (c.variant == kIsStopped) job.signal(victim, SIGSTOP);
  job.await_reports_of_others(victim);
  job.signal(victim, SIGKILL);
  // They have stayed until now: one that ends would be named by those that still wait.
  job.go_on_all();
  const JobEnd end = job.finish();
  return Finding::of(
      first_of({problem_with_errors(
                    end, {.code = ErrorCode::timeout, .culprit = victim, .exempt = {victim}, .within = kHungPatience}),
                problem_with_traces(end)}));
}

}  // namespace

const Property kFaultHung{
    "hung", "a rank that hangs in its own code, with calls of several groups in flight, is named by the others",
    Property::Kind::fault, &add_hung, &run_hung};

}  // namespace col::colcheck
