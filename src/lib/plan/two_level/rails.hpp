// Long vectors over several nodes: every rank of a node carries its part of what the node has to say to others.
//
// A vector consists of shares: one for each node, or one in all. Every node cuts every share among its own ranks, so
// nodes may have different numbers of ranks. The ranks of two nodes that carry the same elements talk to each other:
// with equal nodes, these are the pairs of equal local rank, the rails.
//
//   a share of 12 elements, as nodes of 2 and of 3 ranks carry it; between the two nodes there are four messages:
//     node 0    | rank 0           | rank 1           |
//     node 1    | rank 2    | rank 3     | rank 4     |
//
// A vector is cut into segments, so that several of them can be at different stages at once. carrier.hpp has what a
// rank does with them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include <col/plan.hpp>

#include "plan/blocks.hpp"
#include "plan/nodes.hpp"

namespace col::plan {

// A run of elements in a share that are neighbours in the user's vector, too.
struct Piece {
  int share;
  std::size_t offset;    // in the user's vector
  std::size_t position;  // in the present segment of the share
  std::size_t count;
  Slice in(Buffer buffer) const noexcept { return {buffer, offset, count}; }
};

// How a vector is cut into shares, segments and what ranks carry. All ranks cut alike.
class Rails {
 public:
  struct Span {
    std::size_t offset, count;
  };
  // A share is one or more blocks of the user's vector. `by_block`: the ranks of its own node carry one block each,
  // their own; otherwise they carry even parts of it, as those of other nodes do.
  struct Share {
    std::vector<Span> blocks;
    bool by_block = false;
  };
  struct Range {
    std::size_t begin = 0, end = 0;
  };

  Rails(const PlanRequest& request, std::vector<Share> shares) : nodes_(request), shares_(std::move(shares)) {
    const auto ranks = static_cast<std::size_t>(nodes_.most_ranks());
    std::size_t most = 0;
    for (const Share& share : shares_) {
      std::size_t total = 0;
      for (const Span& block : share.blocks) total += block.count;
      most = std::max(most, (total + ranks - 1) / ranks);
    }
    segments_ = std::min(plan::segments(request, most).parts(), kMostSegments);
  }

  const Nodes& nodes() const noexcept { return nodes_; }
  int shares() const noexcept { return static_cast<int>(shares_.size()); }
  std::size_t segments() const noexcept { return segments_; }

  // The part that a rank carries of segment `s` of a share.
  Range carried(int node, int local, int share, std::size_t s) const {
    const Share& of = shares_[static_cast<std::size_t>(share)];
    Range range;
    if (of.by_block && node == share) {
      for (int i = 0; i < local; ++i) range.begin += part(of.blocks[static_cast<std::size_t>(i)], s).count;
      range.end = range.begin + part(of.blocks[static_cast<std::size_t>(local)], s).count;
      return range;
    }
    for (const Span& block : of.blocks) range.end += part(block, s).count;
    const Blocks cut = Blocks::even(range.end, static_cast<std::size_t>(nodes_.size(node)));
    range.begin = cut.offset(static_cast<std::size_t>(local));
    range.end = range.begin + cut.count(static_cast<std::size_t>(local));
    return range;
  }

  // Calls visit(piece) for a range of segment `s` of a share.
  template <class Visit>
  void each_piece(int share, std::size_t s, Range range, Visit visit) const {
    std::size_t begin = 0;  // of the block
    for (const Span& block : shares_[static_cast<std::size_t>(share)].blocks) {
      const Span here = part(block, s);
      const std::size_t first = std::max(begin, range.begin);
      const std::size_t last = std::min(begin + here.count, range.end);
      if (first < last) visit(Piece{share, here.offset + (first - begin), first, last - first});
      begin += here.count;
    }
  }

 private:
  // More of them would only cost latency.
  static constexpr std::size_t kMostSegments = 64;

  // Segment `s` of a block.
  Span part(const Span& block, std::size_t s) const noexcept {
    if (segments_ == 1) return block;
    const Blocks cut = Blocks::even(block.count, segments_);
    return {block.offset + cut.offset(s), cut.count(s)};
  }

  Nodes nodes_;
  std::vector<Share> shares_;
  std::size_t segments_ = 1;
};

// One share for each node, all of one length.
inline std::vector<Rails::Share> even_shares(std::size_t count, int nodes) {
  const Blocks cut = Blocks::even(count, static_cast<std::size_t>(nodes));
  std::vector<Rails::Share> shares;
  for (std::size_t i = 0; i < cut.parts(); ++i) shares.push_back({.blocks = {{cut.offset(i), cut.count(i)}}});
  return shares;
}

// A share for each node: the blocks of its ranks.
inline std::vector<Rails::Share> shares_of_blocks(const Blocks& blocks, const Nodes& nodes) {
  std::vector<Rails::Share> shares;
  for (int node = 0; node < nodes.count(); ++node) {
    Rails::Share share{.blocks = {}, .by_block = true};
    for (const int rank : nodes.ranks(node)) {
      const auto r = static_cast<std::size_t>(rank);
      share.blocks.push_back({blocks.offset(r), blocks.count(r)});
    }
    shares.push_back(std::move(share));
  }
  return shares;
}

}  // namespace col::plan
