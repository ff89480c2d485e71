// What the collectives give, by the plainest means: of which elements of which ranks each output consists. Tools and
// tests compare the library with it. It is written by hand on purpose, and reads neither the library's table of
// collectives nor its plans: it must not follow them where they are wrong.
//
// The input of a rank is a list of blocks: one for each rank, or a single one (the vector, or its own block). Of
// reductions, arithmetic.hpp says what the combined elements are.
#pragma once

#include <cstddef>
#include <numeric>
#include <vector>

#include <col/types.hpp>

namespace col::tools {

struct ReferenceCall {
  Collective collective = Collective::barrier;
  int size = 1, root = 0;
  std::size_t count = 0;  // elements of the vector, or of each block
  // Of v-forms: elements of each rank's block. Of alltoallv: from each rank to each, at [from * size + to].
  std::vector<std::size_t> counts = {};
  std::vector<Op> ops = {ReduceOp::sum};  // of reductions: by rank, or one for all

  std::size_t block(int from, int to) const {
    if (counts.empty()) return count;
    const auto row = static_cast<std::size_t>(from), column = static_cast<std::size_t>(to);
    return collective == Collective::alltoallv ? counts[row * static_cast<std::size_t>(size) + column] : counts[column];
  }
};

// Elements of an output, one after another: those of block `block` of the inputs of the ranks [first, last), combined.
struct Segment {
  int first = 0, last = 0;
  int block = 0;
  std::size_t count = 0;
};

// The lengths of the blocks that a rank brings; none if it brings nothing. The root of a broadcast brings its output.
inline std::vector<std::size_t> input_blocks(const ReferenceCall& call, int rank) {
  const auto one_for_each = [&] {
    std::vector<std::size_t> blocks;
    for (int to = 0; to < call.size; ++to) blocks.push_back(call.block(rank, to));
    return blocks;
  };
  switch (call.collective) {
    case Collective::allreduce:
    case Collective::reduce:
    case Collective::scan:
    case Collective::exscan:
      return {call.count};
    case Collective::broadcast:
      return rank == call.root ? std::vector{call.count} : std::vector<std::size_t>();
    case Collective::allgather:
    case Collective::allgatherv:
    case Collective::gather:
    case Collective::gatherv:
      return {call.block(rank, rank)};
    case Collective::scatter:
    case Collective::scatterv:
      return rank == call.root ? one_for_each() : std::vector<std::size_t>();
    case Collective::reduce_scatter:
    case Collective::reduce_scatterv:
    case Collective::alltoall:
    case Collective::alltoallv:
      return one_for_each();
    default:
      return {};
  }
}

// What a rank gets; nothing if its output is not written.
inline std::vector<Segment> output_segments(const ReferenceCall& call, int rank) {
  const int all = call.size;
  const bool is_root = rank == call.root;
  const auto one_of_each = [&](int block, auto count_from) {
    std::vector<Segment> segments;
    for (int from = 0; from < all; ++from) segments.push_back({from, from + 1, block, count_from(from)});
    return segments;
  };
  const auto gathered = [&] { return one_of_each(0, [&](int from) { return call.block(from, from); }); };
  switch (call.collective) {
    case Collective::allreduce:
      return {{0, all, 0, call.count}};
    case Collective::reduce:
      return is_root ? std::vector<Segment>{{0, all, 0, call.count}} : std::vector<Segment>();
    case Collective::scan:
      return {{0, rank + 1, 0, call.count}};
    case Collective::exscan:
      return rank > 0 ? std::vector<Segment>{{0, rank, 0, call.count}} : std::vector<Segment>();
    case Collective::broadcast:
      return {{call.root, call.root + 1, 0, call.count}};
    case Collective::allgather:
    case Collective::allgatherv:
      return gathered();
    case Collective::gather:
    case Collective::gatherv:
      return is_root ? gathered() : std::vector<Segment>();
    case Collective::scatter:
    case Collective::scatterv:
      return {{call.root, call.root + 1, rank, call.block(rank, rank)}};
    case Collective::reduce_scatter:
    case Collective::reduce_scatterv:
      return {{0, all, rank, call.block(rank, rank)}};
    case Collective::alltoall:
    case Collective::alltoallv:
      return one_of_each(rank, [&](int from) { return call.block(from, rank); });
    default:
      return {};
  }
}

inline bool reduces(Collective collective) {
  return collective == Collective::allreduce || collective == Collective::reduce || collective == Collective::scan ||
         collective == Collective::exscan || collective == Collective::reduce_scatter ||
         collective == Collective::reduce_scatterv;
}

// Whether a rank brings, or gets, a block for each rank, or of each rank.
inline bool brings_blocks(Collective collective) {
  return collective == Collective::scatter || collective == Collective::scatterv ||
         collective == Collective::reduce_scatter || collective == Collective::reduce_scatterv ||
         collective == Collective::alltoall || collective == Collective::alltoallv;
}
inline bool gets_blocks(Collective collective) {
  return collective == Collective::allgather || collective == Collective::allgatherv ||
         collective == Collective::gather || collective == Collective::gatherv || collective == Collective::alltoall ||
         collective == Collective::alltoallv;
}

inline std::size_t elements_of(const std::vector<std::size_t>& blocks) {
  return std::accumulate(blocks.begin(), blocks.end(), std::size_t{0});
}
inline std::size_t elements_of(const std::vector<Segment>& segments) {
  std::size_t count = 0;
  for (const Segment& segment : segments) count += segment.count;
  return count;
}

// Where block `block` begins in a list of blocks.
inline std::size_t begin_of(const std::vector<std::size_t>& blocks, int block) {
  return std::accumulate(blocks.begin(), blocks.begin() + block, std::size_t{0});
}
// The two sides of a rank's call. Where the call ignores one, it is as long as the root's.
struct Outline {
  int giver = 0;                        // whose input that is
  std::vector<std::size_t> given = {};  // blocks of the input; none of a broadcast
  std::vector<Segment> gotten = {};
  bool reads = true, writes = true;
  std::size_t own_offset = 0;  // of this rank's block in the longer side, where the other one is that block

  std::vector<std::size_t> gotten_counts() const {
    std::vector<std::size_t> counts;
    for (const Segment& segment : gotten) counts.push_back(segment.count);
    return counts;
  }
};

inline Outline outline_of(const ReferenceCall& call, int rank) {
  const bool scatters = call.collective == Collective::scatter || call.collective == Collective::scatterv;
  Outline outline{.giver = scatters ? call.root : rank};
  if (call.collective != Collective::broadcast) outline.given = input_blocks(call, outline.giver);
  outline.gotten = output_segments(call, rank);
  outline.reads = call.collective != Collective::broadcast && outline.giver == rank;
  outline.writes = !outline.gotten.empty() || call.collective == Collective::barrier;
  if (call.collective == Collective::exscan && rank == 0) outline.gotten = {{0, 1, 0, call.count}};
  if (outline.gotten.empty()) outline.gotten = output_segments(call, call.root);
  const bool in_blocks = brings_blocks(call.collective), out_blocks = gets_blocks(call.collective);
  if (in_blocks != out_blocks) outline.own_offset = begin_of(in_blocks ? outline.given : outline.gotten_counts(), rank);
  return outline;
}

// Where a segment begins in what each of its ranks brings.
inline std::size_t begin_of(const ReferenceCall& call, const Segment& segment) {
  return begin_of(input_blocks(call, segment.first), segment.block);
}

}  // namespace col::tools
