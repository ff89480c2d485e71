// One block for each rank, between the root and all ranks along a binomial tree: a gather or, backwards, a scatter.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include <fmt/format.h>

#include <col/plan.hpp>

#include "plan/support.hpp"
#include "plan/trees.hpp"

namespace col::plan {

// Ranks are counted from the root on: v is the rank's number in the tree. A rank inside the tree keeps the blocks of
// its subtree in scratch. At the root, blocks that go around the end of the buffer travel in two messages.
struct BinomialBlocks {
  PlanRequest request;
  bool gathers;  // blocks go up; otherwise down, in the opposite order of rounds

  int position() const { return shifted(request.rank, -request.root, request.size); }
  int rank_of(int v) const { return shifted(v, request.root, request.size); }
  Slice blocks(Buffer buffer, int first, int count) const {
    return {buffer, static_cast<std::size_t>(first) * request.count, static_cast<std::size_t>(count) * request.count};
  }
  // A rank's own block, and the root's blocks of all ranks.
  Slice own() const { return blocks(gathers ? Buffer::input : Buffer::output, 0, 1); }
  Slice of_all(int first, int count) const { return blocks(gathers ? Buffer::output : Buffer::input, first, count); }

  void with_parent(int me, int parent, Round& round) const {
    const int peer = rank_of(parent);
    const auto move = [&](Slice slice) { gathers ? round.send(peer, slice) : round.recv(peer, slice); };
    const int count = subtree(me, request.size);
    if (count == 1) return move(own());
    const int before_end = parent == 0 ? ranks_before_end(request.rank, count, request.size) : count;
    move(blocks(Buffer::scratch, 0, before_end));
    move(blocks(Buffer::scratch, before_end, count - before_end));
  }

  void with_child(int me, int child, Round& round) const {
    const int peer = rank_of(child);
    const auto move = [&](Slice slice) { gathers ? round.recv(peer, slice) : round.send(peer, slice); };
    const int count = subtree(child, request.size);
    if (me != 0) return move(blocks(Buffer::scratch, child - me, count));
    const int before_end = ranks_before_end(peer, count, request.size);
    move(of_all(peer, before_end));
    move(of_all(0, count - before_end));
  }

  // A scattering rank inside the tree sends in the last round too, so this takes no extra time.
  void copy_own(int me, Round& round) const {
    const auto copy = [&](Slice slice) { gathers ? round.copy(slice, own()) : round.copy(own(), slice); };
    if (me != 0 && subtree(me, request.size) > 1) copy(blocks(Buffer::scratch, 0, 1));
    if (me == 0 && !request.in_place) copy(of_all(request.rank, 1));
  }

  void operator()(std::size_t index, Round& round) const {
    const int me = position();
    const int step = static_cast<int>(index);
    const int weight = 1 << (gathers ? step : ceil_log2(request.size) - 1 - step);
    if (me % weight != 0) return;  // is done, or its turn comes in a later round
    if (me & weight) return with_parent(me, me - weight, round);
    if (me + weight < request.size) with_child(me, me + weight, round);
    if (weight == 1) copy_own(me, round);
  }
};

inline std::optional<std::string> refuse_binomial(const PlanRequest& request) {
  if (!row_of(request.collective).has_counts()) return std::nullopt;
  return fmt::format("binomial: a rank inside the tree does not know the counts of those below it in {}; use linear",
                     to_string(request.collective));
}

inline Plan build_binomial(const PlanRequest& request, bool gathers) {
  if (request.size == 1) return alone(request);
  const BinomialBlocks tree{.request = request, .gathers = gathers};
  Scratch scratch;
  const int me = tree.position();
  const int below = me == 0 ? 1 : subtree(me, request.size);
  if (below > 1) scratch.take(Buffer::scratch, static_cast<std::size_t>(below) * request.count);
  return make_plan(static_cast<std::size_t>(ceil_log2(request.size)), scratch, tree);
}

}  // namespace col::plan
