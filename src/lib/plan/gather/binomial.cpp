// Binomial gather: blocks collect up a tree, twice as many per round.
//
// Ranks are counted from the root on. In round k, each v that is an odd multiple of 2^k hands its blocks v, v+1, … to
// v - 2^k and is done. At the root, blocks that go around the end of the buffer come in two messages.
//
//   4 ranks, root 0, blocks that are sent:
//     round   rank 0   rank 1   rank 2   rank 3
//       0              1 -> 0            3 -> 2
//       1                       2,3 -> 0
//
// Steps: L = ceil(log2 p). Bytes on the wire: about n/2 per round, for n bytes in all; n(p-1)/p of them into the root.
// Cost: La + fnb, f = (p-1)/p; one a more where a message is cut in two.
// Wins: short blocks. Limits: any p, any root; equal blocks only: of gatherv, a rank inside the tree does not know the
// counts of those below it. Ranks inside it need scratch for their subtree's blocks.
// Source: R. Thakur, R. Rabenseifner, W. Gropp: Optimization of collective communication operations in MPICH, IJHPCA
// 19(1), 2005. Tested by: tests/unit/plan/algorithms_test.cpp.
#include "plan/cost_terms.hpp"
#include "plan/support.hpp"
#include "plan/trees.hpp"

namespace col::plan::gather {

extern const Algorithm linear;

namespace {

struct Binomial {
  PlanRequest request;

  int position() const { return shifted(request.rank, -request.root, request.size); }
  int rank_of(int v) const { return shifted(v, request.root, request.size); }
  Slice blocks(Buffer buffer, int first, int count) const {
    return {buffer, static_cast<std::size_t>(first) * request.count, static_cast<std::size_t>(count) * request.count};
  }

  void send_up(int me, int parent, Round& round) const {
    const int count = subtree(me, request.size);
    if (count == 1) return round.send(rank_of(parent), blocks(Buffer::input, 0, 1));
    const int before_end = parent == 0 ? ranks_before_end(request.rank, count, request.size) : count;
    round.send(rank_of(parent), blocks(Buffer::scratch, 0, before_end));
    round.send(rank_of(parent), blocks(Buffer::scratch, before_end, count - before_end));
  }

  void receive(int child, Round& round) const {
    const int me = position();
    const int count = subtree(child, request.size);
    if (me != 0) return round.recv(rank_of(child), blocks(Buffer::scratch, child - me, count));
    const int before_end = ranks_before_end(rank_of(child), count, request.size);
    round.recv(rank_of(child), blocks(Buffer::output, rank_of(child), before_end));
    round.recv(rank_of(child), blocks(Buffer::output, 0, count - before_end));
  }

  void operator()(std::size_t index, Round& round) const {
    const int me = position();
    const int weight = 1 << index;
    if (me % weight != 0) return;  // is done
    if (me & weight) return send_up(me, me - weight, round);
    if (me + weight < request.size) receive(me + weight, round);
    if (index != 0) return;
    const Slice own = blocks(Buffer::input, 0, 1);
    if (me != 0 && subtree(me, request.size) > 1) round.copy(blocks(Buffer::scratch, 0, 1), own);
    if (me == 0 && !request.in_place) round.copy(blocks(Buffer::output, request.rank, 1), own);
  }
};

std::optional<std::string> refuse(const PlanRequest& request) {
  if (request.collective != Collective::gatherv) return std::nullopt;
  return "binomial: a rank inside the tree does not know the counts of those below it in gatherv; use linear";
}

Plan build_binomial(const PlanRequest& request) {
  const Binomial binomial{.request = request};
  if (request.size == 1) return linear.build(request);  // a copy
  Scratch scratch;
  const int me = binomial.position();
  const int below = me == 0 ? 1 : subtree(me, request.size);
  if (below > 1) scratch.take(Buffer::scratch, static_cast<std::size_t>(below) * request.count);
  return make_plan(static_cast<std::size_t>(ceil_log2(request.size)), scratch, binomial);
}

}  // namespace

extern constinit const Algorithm binomial = {
    .collective = Collective::gather,
    .name = "binomial",
    .summary = "up a binomial tree; fewest steps, for short blocks",
    .order = FoldOrder::rank_order,
    .parameters = "",
    .refuse = refuse,
    .build = build_binomial,
    .cost = {.text = "Lα + fnβ", .seconds = in_doubling_steps},
};

}  // namespace col::plan::gather
