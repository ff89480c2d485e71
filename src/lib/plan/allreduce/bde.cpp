// Bidirectional exchange (recursive doubling): whole vectors, doubling distances.
//
// In exchange k every rank swaps all it knows with the rank whose number differs in bit k, and both combine the two.
// What a rank holds doubles each time, and every rank ends with the same expression, lower ranks on the left.
//
//   4 ranks, what each one holds after an exchange:
//     exchange   rank 0     rank 1     rank 2     rank 3
//        -       0          1          2          3
//        0       0+1        0+1        2+3        2+3         0 <-> 1, 2 <-> 3
//        1       0+1+2+3    0+1+2+3    0+1+2+3    0+1+2+3     0 <-> 2, 1 <-> 3
//
// Any other number of ranks is folded to a power of two first (folding.hpp): the extra of a group hands in its input
// before and is told the result after. Messages are full duplex: what is sent stays as it is while what arrives is
// added to, hence two regions by turns.
//
// Steps: log2 p; otherwise floor(log2 p) + 2. Bytes on the wire, per rank: n log2 p (folded: up to 2n more). Cost:
// L(a + nb + ng), folded floor(log2 p)(a + nb + ng) + 2(a + nb) + ng. Wins: short vectors, where only steps count.
// Limits: any p; sends log2 p / 2 times the bytes of a ring.
// Source: E. Chan, M. Heimlich, A. Purkayastha, R. van de Geijn: Collective communication: theory, practice, and
// experience, CCPE 19(13), 2007. Tested by: tests/unit/plan/algorithms_test.cpp, with every other builder.
#include "plan/allreduce/doubling.hpp"
#include "plan/cost_terms.hpp"
#include "plan/folding.hpp"
#include "plan/support.hpp"

namespace col::plan::allreduce {
namespace {

struct Doubling {
  PlanRequest request;
  Duplex duplex;
  Folding folding;
  int group;  // of this rank
  Slice input, output;
  Slice raw;         // another rank's bare input
  Slice partial[2];  // exchange k leaves its sum in [k % 2]; a group of two begins with its own in [1]

  bool folds() const { return folding.groups() != folding.size(); }
  int rounds_per_exchange() const { return duplex == Duplex::full ? 1 : 2; }
  // In place, the only exchange sends the memory of the result: the result has to wait for the next round.
  bool combines_late() const { return request.in_place && folding.steps() == 1; }
  std::size_t rounds() const {
    return static_cast<std::size_t>((folds() ? 2 : 0) + folding.steps() * rounds_per_exchange() +
                                    (combines_late() ? 1 : 0));
  }

  int peer_group(int k) const { return group ^ (1 << k); }
  bool is_lower(int k) const { return group < peer_group(k); }
  Slice held(int k) const { return k == 0 && !folding.is_double(group) ? input : partial[(k + 1) % 2]; }
  Slice landing(int k) const { return k == 0 && !folding.is_double(peer_group(k)) ? raw : partial[k % 2]; }

  void operator()(std::size_t index, Round& round) const {
    if (folds() && index == 0) return fold_in(round);
    if (folds() && index + 1 == rounds()) return fold_out(round);
    if (!folding.is_extra(request.rank)) exchange(static_cast<int>(index) - (folds() ? 1 : 0), round);
  }

  void exchange(int i, Round& round) const {
    const int k = i / rounds_per_exchange();
    if (k == folding.steps()) return combine(k - 1, round);  // late
    const int peer = folding.first_rank(peer_group(k));
    const bool is_full = duplex == Duplex::full;
    const bool is_second = i % 2 == 1;  // of the two rounds of a half-duplex exchange
    if (is_full || is_lower(k) != is_second) round.send(peer, held(k));
    if (is_full || is_lower(k) == is_second) round.recv(peer, landing(k));
    if ((is_full || is_second) && !combines_late()) combine(k, round);
  }
  void combine(int k, Round& round) const {
    const bool complete = k == folding.steps() - 1;
    const Slice sum = complete && !request.widens ? output : partial[k % 2];
    round.reduce(sum, is_lower(k) ? held(k) : landing(k), is_lower(k) ? landing(k) : held(k));
    if (complete) round.convert(output, sum);
  }
  void fold_in(Round& round) const {
    if (folding.is_extra(request.rank)) return round.send(request.rank - 1, input);
    if (!folding.has_extra(request.rank)) return;
    round.recv(request.rank + 1, raw);
    round.reduce(partial[1], input, raw);
  }
  void fold_out(Round& round) const {
    if (folding.is_extra(request.rank)) return round.recv(request.rank - 1, output);
    if (folding.has_extra(request.rank)) round.send(request.rank + 1, output);
  }
};

Plan build_bde(const PlanRequest& request) {
  return build_doubling(request, Duplex::full);
}

double allreduce_bde(const CostTerms& t) {
  const double folding = t.folds() ? 2 * t.message(t.n) + t.add(t.n) : 0;
  return t.floor_logarithm() * (t.message(t.n) + t.add(t.n)) + folding;
}

}  // namespace

Plan build_doubling(const PlanRequest& request, Duplex duplex) {
  if (request.size == 1) return alone(request);
  const Folding folding(request.size);
  Doubling plan{.request = request,
                .duplex = duplex,
                .folding = folding,
                .group = folding.group_of(request.rank),
                .input = {Buffer::input, 0, request.count},
                .output = {Buffer::output, 0, request.count},
                .raw = {},
                .partial = {}};
  Scratch scratch;
  if (folding.is_extra(request.rank)) return make_plan(plan.rounds(), scratch, plan);
  // The output serves as the region of the last sum. Not where that is also the region of the first, which may arrive
  // while the input is being sent, in place.
  const int last = folding.steps() - 1;
  const bool output_serves = !request.widens && !(request.in_place && last % 2 == 0);
  const bool uses_both = last > 0 || folding.has_extra(request.rank);
  plan.partial[last % 2] = output_serves ? plan.output : scratch.take(Buffer::wide, request.count);
  if (uses_both) plan.partial[(last + 1) % 2] = scratch.take(Buffer::wide, request.count);
  plan.raw = raw_buffer(request) == Buffer::scratch ? scratch.take(Buffer::scratch, request.count) : plan.partial[0];
  return make_plan(plan.rounds(), scratch, plan);
}

extern constinit const Algorithm bde = {
    .collective = Collective::allreduce,
    .name = "bde",
    .summary = "bidirectional exchange, distances doubling; fewest steps, for short vectors",
    .order = FoldOrder::contiguous,
    .parameters = "",
    .refuse = never_refuses,
    .build = build_bde,
    .cost = {.text = "F(α + nβ + nγ); folded: + 2(α + nβ) + nγ", .seconds = allreduce_bde},
};

}  // namespace col::plan::allreduce
