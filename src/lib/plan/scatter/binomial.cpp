// Binomial scatter: blocks go down a tree, half as many per round.
//
// Ranks are counted from the root on. A rank that has the blocks of its subtree sends the upper half to the rank that
// heads the upper half, and goes on with the lower. At the root, blocks that go around the end of the buffer leave in
// two messages.
//
//   4 ranks, root 0, blocks that are sent:
//     round   rank 0     rank 1   rank 2   rank 3
//       0     2,3 -> 2
//       1     1 -> 1              3 -> 3
//
// Steps: L = ceil(log2 p). Bytes on the wire: about n/2 per round, for n bytes in all; n(p-1)/p of them out of the
// root. Cost: La + fnb, f = (p-1)/p. Wins: short blocks. Limits: any p, any root; equal blocks only: of scatterv, a
// rank inside the tree does not know the counts of those below it. Ranks inside it need scratch for their subtree's
// blocks. Source: R. Thakur, R. Rabenseifner, W. Gropp: Optimization of collective communication operations in MPICH,
// IJHPCA 19(1), 2005. Tested by: tests/unit/plan/algorithms_test.cpp.
#include <fmt/format.h>

#include "plan/cost_terms.hpp"
#include "plan/support.hpp"
#include "plan/trees.hpp"

namespace col::plan::scatter {
namespace {

// v is a rank's number in the tree. A rank inside the tree keeps the blocks of its subtree in scratch.
struct Binomial {
  PlanRequest request;

  int position() const { return shifted(request.rank, -request.root, request.size); }
  int rank_of(int v) const { return shifted(v, request.root, request.size); }
  Slice blocks(Buffer buffer, int first, int count) const {
    return {buffer, static_cast<std::size_t>(first) * request.count, static_cast<std::size_t>(count) * request.count};
  }
  Slice own() const { return blocks(Buffer::output, 0, 1); }

  void receive(int me, int parent, Round& round) const {
    const int peer = rank_of(parent);
    const int count = subtree(me, request.size);
    if (count == 1) return round.recv(peer, own());
    const int before_end = parent == 0 ? ranks_before_end(request.rank, count, request.size) : count;
    round.recv(peer, blocks(Buffer::scratch, 0, before_end));
    round.recv(peer, blocks(Buffer::scratch, before_end, count - before_end));
  }

  void send(int me, int child, Round& round) const {
    const int peer = rank_of(child);
    const int count = subtree(child, request.size);
    if (me != 0) return round.send(peer, blocks(Buffer::scratch, child - me, count));
    const int before_end = ranks_before_end(peer, count, request.size);
    round.send(peer, blocks(Buffer::input, peer, before_end));
    round.send(peer, blocks(Buffer::input, 0, count - before_end));
  }

  // A rank inside the tree sends in the last round too, so this takes no extra time.
  void copy_own(int me, Round& round) const {
    if (me != 0 && subtree(me, request.size) > 1) round.copy(own(), blocks(Buffer::scratch, 0, 1));
    if (me == 0 && !request.in_place) round.copy(own(), blocks(Buffer::input, request.rank, 1));
  }

  void operator()(std::size_t index, Round& round) const {
    const int me = position();
    const int weight = 1 << (ceil_log2(request.size) - 1 - static_cast<int>(index));
    if (me % weight != 0) return;  // its turn comes in a later round
    if (me & weight) return receive(me, me - weight, round);
    if (me + weight < request.size) send(me, me + weight, round);
    if (weight == 1) copy_own(me, round);
  }
};

std::optional<std::string> refuse(const PlanRequest& request) {
  if (!row_of(request.collective).has_counts()) return std::nullopt;
  return fmt::format("binomial: a rank inside the tree does not know the counts of those below it in {}; use linear",
                     to_string(request.collective));
}

Plan build_binomial(const PlanRequest& request) {
  if (request.size == 1) return alone(request);
  const Binomial tree{request};
  const int me = tree.position();
  const int below = me == 0 ? 1 : subtree(me, request.size);
  Scratch scratch;
  if (below > 1) scratch.take(Buffer::scratch, static_cast<std::size_t>(below) * request.count);
  return make_plan(static_cast<std::size_t>(ceil_log2(request.size)), scratch, tree);
}

}  // namespace

extern constinit const Algorithm binomial = {
    .collective = Collective::scatter,
    .name = "binomial",
    .summary = "down a binomial tree; fewest steps, for short blocks",
    .refuse = refuse,
    .build = build_binomial,
    .cost = {.text = "Lα + fnβ", .seconds = in_doubling_steps},
};

}  // namespace col::plan::scatter
