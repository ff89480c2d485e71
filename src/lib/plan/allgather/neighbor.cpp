// Neighbour exchange allgather: like a ring that goes both ways, in half as many rounds.
//
// Ranks 2c and 2c+1 exchange their blocks and are pair c from then on. Now every rank talks to its left and its right
// neighbour by turns, one of which is in its own pair, and gives it the pair of blocks that the other one brought last.
//
//   8 ranks, the pair of blocks that each one gets (pair c: blocks 2c and 2c+1):
//     round   partners             rank 0   1   2   3   4   5   6   7
//       0     0-1 2-3 4-5 6-7           0   0   1   1   2   2   3   3    the other half of the own pair
//       1     1-2 3-4 5-6 7-0           3   1   0   2   1   3   2   0
//       2     0-1 2-3 4-5 6-7           1   3   2   0   3   1   0   2
//       3     1-2 3-4 5-6 7-0           2   2   3   3   0   0   1   1
//
// With n the bytes of all blocks together and f = (p-1)/p:
// Steps: p/2. Bytes on the wire, per rank: fn. Cost: (p/2)a + fnb.
// Wins: against the ring, when the latency of its p-1 steps counts and distant partners are dear. Limits: even p.
// Source: J. Chen, L. Zhang, Y. Zhang, W. Yuan: Performance evaluation of allgather algorithms on terascale Linux
// cluster with fast Ethernet, HPC Asia 2005. Tested by: tests/unit/plan/algorithms_test.cpp.
#include <fmt/format.h>

#include "plan/allgather/assembly.hpp"
#include "plan/cost_terms.hpp"
#include "plan/support.hpp"

namespace col::plan::allgather {
namespace {

struct Neighbor {
  int rank, size;
  Assembly run;

  Slice pair(int c) const {
    const auto first = static_cast<std::size_t>(2 * c);
    return run.range(first, first + 2);
  }

  // The pair that this rank has after round k, and had not before. Odd ranks mirror even ones.
  int pair_of_round(int k) const {
    const int away = k % 2 == 1 ? -(k + 1) / 2 : k / 2;
    return shifted(rank / 2, rank % 2 == 0 ? away : -away, size / 2);
  }

  void operator()(std::size_t index, Round& round) const {
    const int k = static_cast<int>(index);
    const int partner = shifted(rank, (rank + k) % 2 == 0 ? 1 : -1, size);
    if (k == 0) {
      const auto block = static_cast<std::size_t>(partner);
      round.send(partner, run.own_input());
      round.recv(partner, run.range(block, block + 1));
      run.place_own(round);
      run.deliver(round, block, block + 1);
      return;
    }
    const int arriving = pair_of_round(k);
    const auto first = static_cast<std::size_t>(2 * arriving);
    // Round 1 gives the own pair; later rounds what the other neighbour brought.
    round.send(partner, pair(pair_of_round(k - 1)));
    round.recv(partner, pair(arriving));
    run.deliver(round, first, first + 2);
  }
};

std::optional<std::string> refuse(const PlanRequest& request) {
  if (request.size == 1 || request.size % 2 == 0) return std::nullopt;
  return fmt::format("neighbor pairs ranks off and so needs an even number of them, not {}: use ring", request.size);
}

Plan build_neighbor(const PlanRequest& request) {
  if (request.size == 1) return alone(request);
  Scratch scratch;
  Assembly run(request, 0, scratch);
  const auto rounds = static_cast<std::size_t>(request.size / 2);
  return make_plan(rounds, scratch, Neighbor{request.rank, request.size, std::move(run)});
}

}  // namespace

extern constinit const Algorithm neighbor = {
    .collective = Collective::allgather,
    .name = "neighbor",
    .summary = "pairs of blocks go both ways around a ring of even size; half the steps of ring",
    .refuse = refuse,
    .build = build_neighbor,
    .cost = {.text = "(p/2)α + fnβ", .seconds = [](const CostTerms& t) { return t.p / 2 * t.a + t.f() * t.n * t.b; }},
};

}  // namespace col::plan::allgather
