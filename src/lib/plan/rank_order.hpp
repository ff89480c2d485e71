// The strict left fold ((x0 op x1) op x2) … of all ranks' contributions to one slice, for a rank that has all of them.
#pragma once

#include <cstddef>

#include <col/plan.hpp>

#include "plan/blocks.hpp"
#include "plan/support.hpp"

namespace col::plan {

struct RankOrderFold {
  int rank = 0, size = 1;
  bool widens = false, in_place = false;
  Slice own;      // what this rank contributes
  Slice others;   // what the other ranks contribute, one after the other in rank order
  Slice partial;  // used when the result cannot hold an incomplete fold
  Slice result;

  // Where the contribution of `peer`, another rank, is received.
  Slice slot(int peer) const noexcept {
    return others.part(static_cast<std::size_t>(peer < rank ? peer : peer - 1) * own.count, own.count);
  }

  // Combines x0 … x(i-1), the result of step i-1, with xi. The last step also converts. Requires: 1 <= i < size.
  void step(int i, Round& round) const {
    // In place, the memory of the result is still needed as `own`, until the last step at the latest.
    const Slice sum = widens || in_place ? partial : result;
    const bool complete = i == size - 1;
    const Slice to = complete && !widens ? result : sum;
    round.reduce(to, i == 1 ? contribution(0) : sum, contribution(i));
    if (complete) round.convert(result, to);
  }
  // All steps.
  void operator()(Round& round) const {
    for (int i = 1; i < size; ++i) step(i, round);
  }

 private:
  Slice contribution(int of) const noexcept { return of == rank ? own : slot(of); }
};

// The fold of `own` into `result` in a rank's plan, with the scratch that it needs.
inline RankOrderFold fold_in_rank_order(const PlanRequest& request, Slice own, Slice result, Scratch& scratch) {
  RankOrderFold fold;
  fold.rank = request.rank;
  fold.size = request.size;
  fold.widens = request.widens;
  fold.in_place = request.in_place;
  fold.own = own;
  fold.result = result;
  fold.others = scratch.take(raw_buffer(request), own.count * static_cast<std::size_t>(request.size - 1));
  if (request.widens || request.in_place) fold.partial = scratch.take(Buffer::wide, own.count);
  return fold;
}

// A vector cut into one shard for each rank. A rank folds its own shard in rank order, and all get it from there.
struct ShardsInRankOrder {
  PlanRequest request;
  Blocks shards;
  RankOrderFold fold;  // of this rank's shard

  int above(int distance) const { return shifted(request.rank, distance, request.size); }
  // Contributions: to the rank `distance` above, from the rank `distance` below.
  void push(int distance, Round& round) const {
    round.send(above(distance), shards.slice(Buffer::input, above(distance)));
    round.recv(above(-distance), fold.slot(above(-distance)));
  }
  // Complete shards, in the same directions.
  void pull(int distance, Round& round) const {
    round.send(above(distance), fold.result);
    round.recv(above(-distance), shards.slice(Buffer::output, above(-distance)));
  }
};

inline ShardsInRankOrder shards_in_rank_order(const PlanRequest& request, Scratch& scratch) {
  const Blocks shards = Blocks::even(request.count, static_cast<std::size_t>(request.size));
  return {request, shards,
          fold_in_rank_order(request, shards.slice(Buffer::input, request.rank),
                             shards.slice(Buffer::output, request.rank), scratch)};
}

}  // namespace col::plan
