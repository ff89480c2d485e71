// Bruck alltoall: blocks travel in hops of 1, 2, 4, … ranks, many of them in one message.
//
// The block for the rank i above has i ranks to go: it takes the hop of 2^k ranks if bit k of i is set. So in round k
// every rank sends, to the rank 2^k above, all blocks that it has with bit k set, its own and those that came to it.
//
//   4 ranks, what rank 0 sends and gets; "x>y" is the block from rank x for rank y:
//     round 0   to 1: 0>1 0>3   from 3: 3>0 3>2      hops of 1: 3>0 is there, 3>2 has 2 to go
//     round 1   to 2: 0>2 3>2   from 2: 2>0 1>0      hops of 2
//
// A message is one run: each block waits in scratch where it takes its next hop from, among those of the same hop in
// order of i. It is copied there once from the input and once per hop that is not its last.
//
// With n the bytes of a rank's blocks together and L = ceil(log2 p):
// Steps: L. Bytes on the wire, per rank: about (n/2)L. Cost: La + (n/2)Lb, and as much copied.
// Wins: short blocks, many ranks. Limits: any p; blocks of equal length that all ranks know (no alltoallv); memory for
// (n/2)L + n/2.
// Source: J. Bruck, C.-T. Ho, S. Kipnis, E. Upfal, D. Weathersby: Efficient algorithms for all-to-all communications in
// multiport message-passing systems, IEEE TPDS 8(11), 1997. Tested by: tests/unit/plan/algorithms_test.cpp.
#include <bit>

#include "plan/blocks.hpp"
#include "plan/cost_terms.hpp"
#include "plan/support.hpp"

namespace col::plan::alltoall {
namespace {

// How many numbers below n have bit k set.
constexpr std::size_t with_bit(std::size_t n, std::size_t k) {
  const std::size_t half = std::size_t{1} << k;
  const std::size_t rest = n % (2 * half);
  return n / (2 * half) * half + (rest > half ? rest - half : 0);
}

struct Bruck {
  PlanRequest request;
  Blocks blocks;   // of input and output alike
  Packed hops;     // by k: the blocks that take hop k, in all
  Slice waiting;   // where they wait for it
  Slice arriving;  // what one hop brings

  std::size_t size() const { return static_cast<std::size_t>(request.size); }
  Slice input(std::size_t above) const { return blocks.slice(Buffer::input, at(static_cast<int>(above))); }
  Slice output(std::size_t below) const { return blocks.slice(Buffer::output, at(-static_cast<int>(below))); }
  std::size_t at(int by) const { return static_cast<std::size_t>(shifted(request.rank, by, request.size)); }
  // Block i of a region that holds those of hop k.
  Slice among(const Slice& region, std::size_t i, std::size_t k) const {
    return region.part(with_bit(i, k) * request.count, request.count);
  }
  Slice queue(std::size_t k) const { return hops.range(waiting, k, k + 1); }

  void operator()(std::size_t index, Round& round) const {
    if (index == 0) {
      for (std::size_t i = 1; i < size(); ++i) {
        const auto k = static_cast<std::size_t>(std::countr_zero(i));
        round.copy(among(queue(k), i, k), input(i));
      }
      if (!request.in_place) round.copy(output(0), input(0));
      return;
    }
    const std::size_t k = index - 1;
    const std::size_t hop = std::size_t{1} << k;
    const Slice landing = arriving.part(0, hops.count(k, k + 1));
    round.send(shifted(request.rank, static_cast<int>(hop), request.size), queue(k));
    round.recv(shifted(request.rank, -static_cast<int>(hop), request.size), landing);
    for (std::size_t i = hop; i < size(); i = (i + 1) | hop) {
      const std::size_t to_go = i >> (k + 1);
      const std::size_t next = k + 1 + static_cast<std::size_t>(std::countr_zero(to_go));
      round.copy(to_go == 0 ? output(i) : among(queue(next), i, next), among(landing, i, k));
    }
  }
};

std::optional<std::string> refuse(const PlanRequest& request) {
  if (!row_of(request.collective).has_counts()) return std::nullopt;
  return "bruck forwards blocks of other ranks, and in alltoallv a rank does not know their counts: use pairwise or "
         "linear";
}

Plan build_bruck(const PlanRequest& request) {
  const auto size = static_cast<std::size_t>(request.size);
  const auto rounds = static_cast<std::size_t>(ceil_log2(request.size));
  const Packed hops(rounds, [&](std::size_t k) { return with_bit(size, k) * request.count; });
  std::size_t most = 0;
  for (std::size_t k = 0; k < rounds; ++k) most = std::max(most, hops.count(k, k + 1));
  Scratch scratch;
  const Slice waiting = scratch.take(Buffer::scratch, hops.total());
  const Slice arriving = scratch.take(Buffer::scratch, most);
  return make_plan(rounds + 1, scratch, Bruck{request, Blocks::of_input(request), hops, waiting, arriving});
}

// In step k, the blocks whose distance has bit k.
double alltoall_bruck(const CostTerms& t) {
  double seconds = 0;
  for (int bit = 1; bit < t.p; bit *= 2) {
    int blocks = 0;
    for (int distance = 1; distance < t.p; ++distance) blocks += (distance & bit) != 0 ? 1 : 0;
    seconds += t.message(blocks * t.n / t.p);
  }
  return seconds;
}

}  // namespace

extern constinit const Algorithm bruck = {
    .collective = Collective::alltoall,
    .name = "bruck",
    .summary = "blocks travel in hops of 1, 2, 4, … ranks, many in one message; for short blocks and many ranks",
    .refuse = refuse,
    .build = build_bruck,
    .cost = {.text = "Lα + about (n/2)Lβ", .seconds = alltoall_bruck},
};

}  // namespace col::plan::alltoall
