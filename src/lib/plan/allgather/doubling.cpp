// Recursive doubling allgather: in every round, ranks at twice the distance exchange all that they have.
//
//   4 ranks, the blocks that each one holds:
//     before    rank 0: 0      rank 1: 1      rank 2: 2      rank 3: 3
//     round 0   0 <-> 1, 2 <-> 3:   0 1 | 0 1 | 2 3 | 2 3
//     round 1   0 <-> 2, 1 <-> 3:   all, everywhere
//
// When p is no power of two, the first pairs of ranks fold: of ranks 2i and 2i+1 the odd one, called extra, gives its
// block to the even one before and gets everything afterwards, so that a power of two of groups remains, each of one
// rank or two. Groups are ranges of ranks, so what one holds is always one run of blocks and one message. In
// allgatherv, blocks need not lie in rank order in the output: there the run is made in scratch.
//
// With n the bytes of all blocks together, L = log2 p and f = (p-1)/p:
// Steps: L. Bytes on the wire, per rank: fn, both the least possible. Cost: La + fnb. Folded, with L rounded down:
// L+2 steps, and about 2n through the ranks that have an extra.
// Wins: short and middling vectors on a power of two of ranks; unlike bruck it copies nothing. Limits: any p, but bruck
// is better where p is no power of two.
// Source: R. Thakur, R. Rabenseifner, W. Gropp: Optimization of collective communication operations in MPICH, IJHPCA
// 19(1), 2005. Tested by: tests/unit/plan/algorithms_test.cpp, with every other builder.
#include "plan/allgather/assembly.hpp"
#include "plan/cost_terms.hpp"
#include "plan/folding.hpp"
#include "plan/support.hpp"

namespace col::plan::allgather {
namespace {

struct Doubling {
  int rank;
  Folding folding;
  Assembly run;

  // Blocks of the ranks of groups [first, last).
  Slice blocks(int first, int last) const { return run.range(begin(first), begin(last)); }
  std::size_t begin(int group) const { return static_cast<std::size_t>(folding.first_rank(group)); }

  void exchange(int step, Round& round) const {
    const int group = folding.group_of(rank);
    const int width = 1 << step;
    const int mine = group & ~(width - 1);  // the groups whose blocks this rank has
    const int theirs = mine ^ width;
    const int peer = folding.first_rank(group ^ width);
    const bool bare = step == 0 && !folding.is_double(group);
    round.send(peer, bare ? run.own_input() : blocks(mine, mine + width));
    round.recv(peer, blocks(theirs, theirs + width));
    if (bare) run.place_own(round);
    run.deliver(round, begin(theirs), begin(theirs + width));
  }

  void operator()(std::size_t index, Round& round) const {
    const int k = static_cast<int>(index);
    const auto all = static_cast<std::size_t>(folding.size());
    if (folding.is_extra(rank)) {
      if (k == 0) {
        round.send(rank - 1, run.own_input());
      } else {
        round.recv(rank - 1, run.range(0, all));
        run.deliver(round, 0, all);
      }
      return;
    }
    const int before = folding.has_extra(rank) ? 1 : 0;
    if (k < before) {
      const auto extra = static_cast<std::size_t>(rank + 1);
      round.recv(rank + 1, run.range(extra, extra + 1));
      run.place_own(round);
      run.deliver(round, extra, extra + 1);
    } else if (k - before < folding.steps()) {
      exchange(k - before, round);
    } else {
      round.send(rank + 1, run.range(0, all));
    }
  }
};

Plan build_doubling(const PlanRequest& request) {
  if (request.size == 1) return alone(request);
  Scratch scratch;
  const Folding folding(request.size);
  Assembly run(request, 0, scratch);
  const int around = folding.has_extra(request.rank) ? 2 : 0;
  const int rounds = folding.is_extra(request.rank) ? 2 : folding.steps() + around;
  return make_plan(static_cast<std::size_t>(rounds), scratch, Doubling{request.rank, folding, std::move(run)});
}

// Folded, rank 0's group and its neighbours have two blocks each: what is exchanged is longer there.
double allgather_doubling(const CostTerms& t) {
  if (!t.folds()) return in_doubling_steps(t);
  const double block = t.n / t.p;
  const int extras = t.p - t.groups();
  double seconds = t.message(block) + t.message(t.n);
  for (int width = 1; width < t.groups(); width *= 2) seconds += t.message((width + std::min(width, extras)) * block);
  return seconds;
}

}  // namespace

extern constinit const Algorithm doubling = {
    .collective = Collective::allgather,
    .name = "doubling",
    .summary = "partners at doubling distance exchange all they have; few steps, for powers of two",
    .build = build_doubling,
    .cost = {.text = "Lα + fnβ; folded: (F+2)α + about 2nβ", .seconds = allgather_doubling},
};

}  // namespace col::plan::allgather
