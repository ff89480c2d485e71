// K-nomial broadcast: every rank that has the data sends to k-1 others per round.
//
// Ranks are counted from the root on and written in base k. A rank's parent is the same number with its lowest digit
// that is not zero set to zero; a rank receives in the round of that digit, the highest digit first, and serves the
// digits below it in the rounds after.
//
//   4 ranks, root 0, what is sent:
//     round   k = 2: rank 0   rank 2        k = 4: rank 0
//       0            -> 2                          -> 1, 2, 3
//       1            -> 1     -> 3
//
// Steps: D = ceil(log_k p), of up to k-1 messages each. Bytes on the wire: n(p-1) in all. Cost: at most D(k-1)(a + nb).
// Wins: short vectors, where a message's latency passes on the wire rather than in the sender, so that k-1 of them cost
// little more than one. Limits: any p, any root; the default for k is 4; k = 2 is the binomial tree, k >= p is linear.
// Source: M. Wilkins et al.: Generalized collective algorithms for the exascale era, IEEE Cluster 2023.
// Tested by: tests/unit/plan/algorithms_test.cpp.
#include <fmt/format.h>

#include "plan/cost_terms.hpp"
#include "plan/support.hpp"

namespace col::plan::broadcast {
namespace {

constexpr int kDefaultRadix = 4;

// Powers of the radix stay far below overflow: nothing changes above p.
int radix_of(const PlanRequest& request) {
  const int radix = request.parameters.radix == 0 ? kDefaultRadix : request.parameters.radix;
  return std::min(radix, std::max(request.size, 2));
}

struct Knomial {
  PlanRequest request;
  int radix = kDefaultRadix;
  int top = 1;  // the highest digit's weight

  void operator()(std::size_t index, Round& round) const {
    int weight = top;
    for (std::size_t i = 0; i < index; ++i) weight /= radix;
    const Slice data{Buffer::output, 0, request.count};
    const int me = shifted(request.rank, -request.root, request.size);
    const int digit = me / weight % radix;
    if (me % weight != 0) return;  // its turn comes in a later round
    if (digit != 0 && me % (weight * radix) == digit * weight) {
      round.recv(shifted(request.rank, -digit * weight, request.size), data);
      return;
    }
    for (int d = 1; d < radix && me + d * weight < request.size; ++d)
      round.send(shifted(request.rank, d * weight, request.size), data);
  }
};

std::optional<std::string> refuse(const PlanRequest& request) {
  if (request.parameters.radix == 0 || request.parameters.radix >= 2) return std::nullopt;
  return fmt::format("knomial: a tree needs a radix of 2 or more, not {}; leave it at 0 for {}, or use mst",
                     request.parameters.radix, kDefaultRadix);
}

Plan build_knomial(const PlanRequest& request) {
  Knomial knomial{.request = request, .radix = radix_of(request)};
  std::size_t rounds = 0;
  for (int reached = 1; reached < request.size; reached *= knomial.radix, ++rounds) knomial.top = reached;
  return make_plan(rounds, {}, knomial);
}

// D(k-1)(a + nb) where p is a power of the radix k.
double broadcast_knomial(const CostTerms& t) {
  const int radix = std::min(t.parameters.radix == 0 ? 4 : t.parameters.radix, std::max(t.p, 2));
  int messages = 0;
  for (int ranks = t.p; ranks > 1; ranks = (ranks + radix - 1) / radix) messages += std::min(radix, ranks) - 1;
  return messages * t.message(t.n);
}

}  // namespace

extern constinit const Algorithm knomial = {
    .collective = Collective::broadcast,
    .name = "knomial",
    .summary = "a tree of radix k; for short vectors over links that carry several messages at once",
    .parameters = "radix",
    .refuse = refuse,
    .build = build_knomial,
    .cost = {.text = "D(k-1)(α + nβ), D = ⌈log_k p⌉", .seconds = broadcast_knomial},
};

}  // namespace col::plan::broadcast
