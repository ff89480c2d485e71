#include "plan.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "../programs/random.hpp"

namespace mismatches {
namespace {

using col::Collective;
using programs::Random;

const std::vector<Collective> kCollectives = {
    Collective::allreduce, Collective::broadcast,  Collective::reduce,         Collective::allgather,
    Collective::gather,    Collective::scatter,    Collective::reduce_scatter, Collective::alltoall,
    Collective::barrier,   Collective::allgatherv, Collective::gatherv,        Collective::scatterv,
    Collective::alltoallv, Collective::allreduce,  Collective::allreduce,      Collective::broadcast,
};
const std::vector<col::DType> kTypes = {col::DType::float32, col::DType::float64, col::DType::int32, col::DType::int64,
                                        col::DType::uint8};
const std::vector<col::ReduceOp> kOps = {col::ReduceOp::sum, col::ReduceOp::max, col::ReduceOp::min};

std::size_t draw_count(Random& random) {
  const int size = random.below(100);
  return 1 + random.below(std::size_t{size < 75 ? 64U : size < 95 ? 4'096U : 60'000U});
}

void draw_call(Step& step, int ranks, Random& random) {
  const auto n = static_cast<std::size_t>(ranks);
  step.collective = random.pick(kCollectives);
  step.count = draw_count(random);
  step.dtype = random.pick(kTypes);
  step.op = random.pick(kOps);
  step.root = random.below(ranks);
  step.counts.clear();
  if (col::row_of(step.collective).has_counts()) {
    step.counts.resize(step.collective == Collective::alltoallv ? n * n : n);
    for (std::size_t& count : step.counts) count = 1 + random.below(std::size_t{200});
  }
}

Step draw_step(Mode mode, int groups, int ranks, std::size_t number, std::size_t steps, Random& random) {
  Step step;
  draw_call(step, ranks, random);
  step.group = groups > 1 && random.chance(20) ? 1 : 0;
  step.asynchronous = mode == Mode::async || (mode == Mode::mixed && random.chance(50));
  step.end = random.chance(40) ? steps : number + 1 + random.below(std::size_t{4});
  step.way = random.chance(50) ? Way::wait : random.chance(50) ? Way::wait_for : Way::test;
  return step;
}

template <class T>
T other_than(const std::vector<T>& list, const T& known, Random& random) {
  for (;;) {
    const T& one = random.pick(list);
    if (one != known) return one;
  }
}

bool can_differ(const Step& step, Kind kind) {
  const Collective c = step.collective;
  switch (kind) {
    case Kind::count:
      return c != Collective::barrier && !col::row_of(c).has_counts();
    case Kind::dtype:
      return c != Collective::barrier;
    case Kind::root:
      return col::row_of(c).rooted;
    case Kind::reduce_op:
      return col::row_of(c).reduces();
    case Kind::counts:
      return col::row_of(c).has_counts();
    default:
      return true;
  }
}

// What the step must be for the job's kind of difference to be possible there.
void fit(Step& step, const Job& job, Random& random) {
  while (!can_differ(step, job.kind)) draw_call(step, job.ranks, random);
}

void differ(Job& job, Random& random) {
  std::vector<Step>& steps = job.culprits;
  Step& step = steps[job.place];
  const auto self = static_cast<std::size_t>(job.culprit), n = static_cast<std::size_t>(job.ranks);
  switch (job.kind) {
    case Kind::op: {
      const Collective known = step.collective;
      while (step.collective == known) draw_call(step, job.ranks, random);
      break;
    }
    case Kind::count:
      step.count += 1 + random.below(std::size_t{3});
      break;
    case Kind::dtype:
      step.dtype = other_than(kTypes, step.dtype, random);
      break;
    case Kind::root:
      step.root = (step.root + 1 + random.below(job.ranks - 1)) % job.ranks;
      break;
    case Kind::reduce_op:
      step.op = other_than(kOps, step.op, random);
      break;
    case Kind::order:
      std::swap(steps[job.place], steps[job.place + 1]);
      std::swap(steps[job.place].end, steps[job.place + 1].end);
      break;
    case Kind::skipped:
      steps.erase(steps.begin() + static_cast<std::ptrdiff_t>(job.place));
      for (Step& later : steps) later.end -= later.end > job.place ? 1 : 0;
      break;
    case Kind::extra:
      steps.insert(steps.begin() + static_cast<std::ptrdiff_t>(job.place), step);
      for (Step& later : steps) later.end += later.end > job.place ? 1 : 0;
      break;
    case Kind::algorithm:
      step.algorithm = 1;
      break;
    case Kind::counts:
      switch (step.collective) {
        case Collective::alltoallv:
          ++step.counts[self * n + (self + 1) % n];
          break;
        case Collective::allgatherv:
          ++step.counts[random.below(n)];
          break;
        default:  // the root's list, or the block that another rank sends or gets
          ++step.counts[job.culprit == step.root ? (self + 1) % n : self];
          break;
      }
      job.is_between_two = step.collective != Collective::allgatherv;
      break;
  }
}

template <std::size_t N>
std::size_t index_of(const std::array<std::string_view, N>& names, const std::string& name) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) throw std::invalid_argument("there is no '" + name + "'");
  return static_cast<std::size_t>(found - names.begin());
}

}  // namespace

bool Step::same_call(const Step& other) const {
  return collective == other.collective && count == other.count && dtype == other.dtype && op == other.op &&
         root == other.root && counts == other.counts && asynchronous == other.asynchronous;
}

std::string Step::text() const {
  return (asynchronous ? "i" : "") + std::string(to_string(collective)) + " of " + std::to_string(count) + " " +
         std::string(to_string(dtype)) + ", " + std::string(to_string(op)) + ", root " + std::to_string(root) +
         (group == 1 ? ", in the second group" : "");
}

std::string Job::text() const {
  return backend + " " + std::string(kModes[static_cast<std::size_t>(mode)]) + ", n = " + std::to_string(ranks) + ": " +
         std::string(kKinds[static_cast<std::size_t>(kind)]) + " of rank " + std::to_string(culprit) + " at step " +
         std::to_string(place) + " of " + std::to_string(others.size()) + ", " + others[place].text();
}

Job make_job(std::uint64_t seed, std::uint64_t number, const Wishes& wishes) {
  Random random(programs::mixed(seed, number));
  Job job;
  job.number = number;
  job.backend = random.chance(50) ? "shm" : "gloo";
  job.mode = static_cast<Mode>(random.below(3));
  job.kind = static_cast<Kind>(random.below(static_cast<int>(kKinds.size())));
  if (!wishes.backend.empty()) job.backend = wishes.backend;
  if (!wishes.mode.empty()) job.mode = static_cast<Mode>(index_of(kModes, wishes.mode));
  if (!wishes.kind.empty()) job.kind = static_cast<Kind>(index_of(kKinds, wishes.kind));
  job.ranks = 2 + random.below(8);
  job.culprit = random.below(job.ranks);
  const std::size_t steps = 5 + random.below(std::size_t{11});
  for (std::size_t i = 0; i < steps; ++i)
    job.others.push_back(draw_step(job.mode, wishes.groups, job.ranks, i, steps, random));
  job.place = random.below(steps - (job.kind == Kind::order ? 1 : 0));
  fit(job.others[job.place], job, random);
  if (job.kind == Kind::order) {
    Step& next = job.others[job.place + 1];
    next.group = job.others[job.place].group;
    while (next.same_call(job.others[job.place])) draw_call(next, job.ranks, random);
  }
  if (job.kind == Kind::algorithm) job.others[job.place].algorithm = 0;
  job.culprits = job.others;
  differ(job, random);
  return job;
}

}  // namespace mismatches
