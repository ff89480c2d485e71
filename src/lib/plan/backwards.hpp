// A plan read backwards: what it sends it receives, from its last round to its first. So a gather is a scatter.
//
//   3 ranks, root 0:
//     scatter   rank 0 sends 1 -> 1, 2 -> 2, copies its own block         rank 1 receives 1     rank 2 receives 2
//     gather    rank 0 copies its own block, receives 2 <- 2, 1 <- 1      rank 1 sends 1        rank 2 sends 2
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <utility>

#include <col/plan.hpp>

namespace col::plan {

// The caller's buffers change places, and messages pair in the opposite order on both sides. Requires: it only moves
// elements, and no local step reads what arrives in its own round. `packs`: its first round has local steps alone. They
// join the messages that it is for, so that each runs as soon as what it unpacks has arrived.
inline Plan backwards(const Plan& plan, bool packs = false) {
  const std::size_t last = plan.rounds - 1;
  Plan mirror = plan;
  mirror.rounds -= packs ? 1 : 0;
  mirror.generate = [generate = plan.generate, last, packs](std::size_t index, Round& round) {
    if (packs && index + 1 == last) generate(0, round);
    generate(last - index, round);
    const auto opposite = [](Buffer buffer) {
      return buffer == Buffer::input ? Buffer::output : buffer == Buffer::output ? Buffer::input : buffer;
    };
    std::reverse(round.steps().begin(), round.steps().end());
    for (Step& step : round.steps()) {
      if (step.is_message()) step.kind = step.kind == Step::Kind::send ? Step::Kind::recv : Step::Kind::send;
      std::swap(step.to, step.left);
      for (Slice* slice : {&step.to, &step.left}) slice->buffer = opposite(slice->buffer);
    }
  };
  return mirror;
}

// The plan of a gather or gatherv: the scatter of that name backwards.
inline Plan scatter_backwards(std::string_view name, PlanRequest request, bool packs = false) {
  request.collective = row_of(request.collective).has_counts() ? Collective::scatterv : Collective::scatter;
  std::swap(request.in_counts, request.out_counts);
  std::swap(request.in_displacements, request.out_displacements);
  return backwards(find_algorithm(request.collective, name)->build(request), packs);
}

}  // namespace col::plan
