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
//
// bde_half is the same over links that carry one direction at a time: each exchange takes two rounds.
//
// The lower rank of two partners sends while the upper one receives, then the other way round. Written so, with
// blocking calls, the exchange costs as much as the minimum spanning trees of mst.cpp: this is what full duplex is
// worth. For teaching.
//
//   4 ranks:
//     round   sends                      who holds what afterwards
//       0     0 -> 1, 2 -> 3
//       1     1 -> 0, 3 -> 2             0 and 1: 0+1, 2 and 3: 2+3
//       2     0 -> 2, 1 -> 3
//       3     2 -> 0, 3 -> 1             all: 0+1+2+3
//
// Steps: 2 log2 p; otherwise 2 floor(log2 p) + 2. Bytes on the wire, per rank: n log2 p (folded: up to 2n more). Cost:
// 2L(a + nb) + Lng, folded 2 floor(log2 p)(a + nb) + floor(log2 p)ng + 2(a + nb) + ng. Wins: never against bde.
// Limits: any p.
#include "plan/cost_terms.hpp"
#include "plan/folding.hpp"
#include "plan/support.hpp"

namespace col::plan::allreduce {
namespace {

enum class Duplex : unsigned char {
  full,  // partners send to each other at the same time
  half,  // the lower one sends, then the upper one
};

struct Doubling {
  PlanRequest request;
  Duplex duplex;
  Folding folding;
  int group;  // of this rank
  Slice input, output;
  Slice raw = {};         // another rank's bare input
  Slice partial[2] = {};  // exchange k leaves its sum in [k % 2]; a group of two begins with its own in [1]

  bool folds() const { return folding.folds(); }
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
    if (folds() && index == 0) return fold_in(folding, request.rank, input, raw, partial[1], round);
    if (folds() && index + 1 == rounds()) return fold_out(folding, request.rank, output, round);
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
};

Plan build_doubling(const PlanRequest& request, Duplex duplex) {
  if (request.size == 1) return alone(request);
  const Folding folding(request.size);
  Doubling plan{.request = request,
                .duplex = duplex,
                .folding = folding,
                .group = folding.group_of(request.rank),
                .input = {Buffer::input, 0, request.count},
                .output = {Buffer::output, 0, request.count}};
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

}  // namespace

extern constinit const Algorithm bde = {
    .collective = Collective::allreduce,
    .name = "bde",
    .summary = "bidirectional exchange, distances doubling; fewest steps, for short vectors",
    .order = FoldOrder::contiguous,
    .build = [](const PlanRequest& request) { return build_doubling(request, Duplex::full); },
    .cost = {.text = "F(α + nβ + nγ); folded: + 2(α + nβ) + nγ",
             .seconds =
                 [](const CostTerms& t) { return t.floor_logarithm() * (t.message(t.n) + t.add(t.n)) + t.folding(); }},
};

extern constinit const Algorithm bde_half = {
    .collective = Collective::allreduce,
    .name = "bde_half",
    .summary = "bde with half-duplex messages, twice the steps; for teaching",
    .order = FoldOrder::contiguous,
    .build = [](const PlanRequest& request) { return build_doubling(request, Duplex::half); },
    .cost = {.text = "F(2α + 2nβ + nγ); folded: + 2(α + nβ) + nγ",
             .seconds =
                 [](const CostTerms& t) {
                   return t.floor_logarithm() * (2 * t.message(t.n) + t.add(t.n)) + t.folding();
                 }},
};

}  // namespace col::plan::allreduce
