// The part of one rank for long vectors over several nodes: what it does inside a node, and between two.
//
// A part is a function. While one segment is folded inside the nodes, the one before it travels between them, and so on
// (pipelined()).
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include <col/plan.hpp>

#include "plan/support.hpp"
#include "plan/two_level/rails.hpp"

namespace col::plan {

class Carrier {
 public:
  Carrier(const PlanRequest& request, std::vector<Rails::Share> shares)
      : request_(request), rails_(std::make_shared<const Rails>(request, std::move(shares))) {
    node_ = nodes().node_of(request.rank);
    local_ = nodes().local_of(request.rank);
    // The first segment is the longest.
    for (int share = 0; share < rails_->shares(); ++share) {
      const Rails::Range range = mine(share, 0);
      starts_.push_back(carried_);
      carried_ += range.end - range.begin;
      most_ = std::max(most_, range.end - range.begin);
    }
  }

  // Takes the memory of a reduction. Partial results of up to `depth` segments live at a time. They come from other
  // nodes in `hops`, in the first of them from node `first`: bare inputs, if it has one rank. -1: never bare.
  void take_memory(int depth, int hops, int first, Scratch& scratch) {
    take_sums(depth, scratch);
    for (int hop = 0; hop < hops; ++hop) {
      const bool bare = hop == 0 && first >= 0 && nodes().size(first) == 1;
      landings_.push_back(scratch.take(bare ? raw_buffer(request_) : Buffer::wide, most_));
    }
  }

  // Takes the memory of a fold in rank order. Partial results of two segments live at a time: one is made while the
  // one before it is sent.
  void take_ordered_memory(Scratch& scratch) {
    take_sums(2, scratch);
    if (node_ == 0) return;
    const bool is_bare = node_ == 1 && nodes().size(0) == 1;
    landings_.push_back(scratch.take(is_bare ? raw_buffer(request_) : Buffer::wide, carried_));
  }

  const Nodes& nodes() const noexcept { return rails_->nodes(); }
  std::size_t segments() const noexcept { return rails_->segments(); }
  int node() const noexcept { return node_; }
  std::size_t carried() const noexcept { return carried_; }  // of all shares, in a segment
  // Where a piece is in memory that has what this rank carries of all shares.
  std::size_t place_of(const Piece& piece, std::size_t s) const {
    return starts_[static_cast<std::size_t>(piece.share)] + piece.position - mine(piece.share, s).begin;
  }

  // ---- Inside a node ----

  // Every rank gets what it carries from the others of its node, and adds it up.
  void fold_in_node(std::size_t s, Round& round) const {
    const int size = nodes().size(node_);
    exchange_inputs(s, round);
    each_carried(local_, s, [&](const Piece& piece) {
      for (int i = 1; i < size; ++i)
        round.reduce(sum(piece, s), i == 1 ? contribution(0, piece, s) : sum(piece, s), contribution(i, piece, s));
    });
  }

  // Every rank gets what it carries from the others of its node.
  void exchange_inputs(std::size_t s, Round& round) const {
    const int size = nodes().size(node_);
    for (int by = 1; by < size; ++by) {
      const int to = shifted(local_, by, size), from = shifted(local_, -by, size);
      each_carried(to, s, [&](const Piece& piece) { round.send(neighbor(to), piece.in(Buffer::input)); });
      each_carried(local_, s, [&](const Piece& piece) { round.recv(neighbor(from), contribution(from, piece, s)); });
    }
  }

  // Every rank sends what it carries of the result to the others of its node; `has_all` (-1: none) needs nothing.
  void spread_in_node(std::size_t s, int has_all, Round& round) const {
    const int size = nodes().size(node_);
    const auto result = [](const Piece& piece) { return piece.in(Buffer::output); };
    for (int by = 1; by < size; ++by) {
      const int to = shifted(local_, by, size), from = shifted(local_, -by, size);
      if (neighbor(to) != has_all)
        each_carried(local_, s, [&](const Piece& piece) { round.send(neighbor(to), result(piece)); });
      if (request_.rank != has_all)
        each_carried(from, s, [&](const Piece& piece) { round.recv(neighbor(from), result(piece)); });
    }
  }

  // The root, which has everything, sends the others of its node what they carry. `where(piece)`: where this rank has
  // what it carries.
  template <class Where>
  void scatter_in_node(std::size_t s, Round& round, Where where) const {
    each_of_root(nodes().node_of(request_.root), s, [&](int carrier, const Piece& piece) {
      request_.rank == request_.root ? round.send(carrier, piece.in(Buffer::output))
                                     : round.recv(request_.root, where(piece));
    });
  }

  // ---- Between nodes ----

  // Moves what this rank carries of a share, to or from the ranks of another node that carry the same elements.
  template <class Where>
  void send(int to, int share, std::size_t s, Round& round, Where where) const {
    each_shared(to, share, s, [&](int peer, const Piece& piece) { round.send(peer, where(piece)); });
  }
  template <class Where>
  void receive(int from, int share, std::size_t s, Round& round, Where where) const {
    each_shared(from, share, s, [&](int peer, const Piece& piece) { round.recv(peer, where(piece)); });
  }

  // Partial results. `first`: no other node has added to them.
  void send_sums(int to, int share, std::size_t s, bool first, Round& round) const {
    send(to, share, s, round, [&](const Piece& piece) { return first ? own(piece, s) : sum(piece, s); });
  }
  // Receives partial results on hop number `hop` and adds to them. If this makes them complete, they become
  // result(piece).
  template <class Result>
  void add_sums(int from, int share, std::size_t s, int hop, bool complete, Round& round, Result result) const {
    const Slice& landing = landings_[static_cast<std::size_t>(hop)];
    const auto arrived = [&](const Piece& piece) {
      return landing.part(piece.position - mine(share, s).begin, piece.count);
    };
    receive(from, share, s, round, arrived);
    rails_->each_piece(share, s, mine(share, s), [&](const Piece& piece) {
      const Slice to = complete && !request_.widens ? result(piece) : sum(piece, s);
      round.reduce(to, arrived(piece), own(piece, s));
      if (complete) round.convert(result(piece), to);
    });
  }

  // One of the n hops along the chain of all n nodes that fold in rank order: every rank of node `hop` adds the inputs
  // of its node, in order, to what came from the node before. On the last node this makes them complete.
  template <class Result>
  void fold_in_order(int hop, std::size_t s, Round& round, Result result) const {
    const auto arrived = [&](const Piece& piece) { return landings_.front().part(place_of(piece, s), piece.count); };
    const auto passed_on = [&](const Piece& piece) {
      return node_ == 0 && locals() == 1 ? piece.in(Buffer::input) : sum(piece, s);
    };
    for (int share = 0; share < rails_->shares(); ++share) {
      if (hop == node_ + 1) send(hop, share, s, round, passed_on);
      if (hop == node_ && hop > 0) receive(hop - 1, share, s, round, arrived);
    }
    if (hop != node_) return;
    exchange_inputs(s, round);
    const int size = nodes().size(node_);
    const bool completes = node_ == nodes().count() - 1;
    each_carried(local_, s, [&](const Piece& piece) {
      Slice total = node_ == 0 ? contribution(0, piece, s) : arrived(piece);
      for (int i = node_ == 0 ? 1 : 0; i < size; ++i) {
        const bool is_result = completes && i == size - 1 && !request_.widens;
        const Slice to = is_result ? result(piece) : sum(piece, s);
        round.reduce(to, total, contribution(i, piece, s));
        total = to;
      }
      if (completes) round.convert(result(piece), total);
    });
  }

  // The ranks of a node hand the root, which may be on it or on another, what they carry.
  template <class Where>
  void hand_to_root(int node, std::size_t s, Round& round, Where where) const {
    each_of_root(node, s, [&](int carrier, const Piece& piece) {
      request_.rank == request_.root ? round.recv(carrier, piece.in(Buffer::output))
                                     : round.send(request_.root, where(piece));
    });
  }

  // One of the n-1 hops around the ring of all n nodes, after which every node has its own share complete.
  template <class Result>
  void ring_reduce(int hop, std::size_t s, Round& round, Result result) const {
    const int n = nodes().count();
    send_sums(ring(1), ring(-1 - hop), s, hop == 0, round);
    add_sums(ring(-1), ring(-2 - hop), s, hop, hop == n - 2, round, result);
  }
  // One of the n-1 hops after which every node has every share. `own`: where this rank has its part of its own node's.
  template <class Where>
  void ring_gather(int hop, std::size_t s, Round& round, Where own) const {
    const auto result = [](const Piece& piece) { return piece.in(Buffer::output); };
    send(ring(1), ring(-hop), s, round, [&](const Piece& piece) { return hop == 0 ? own(piece) : result(piece); });
    receive(ring(-1), ring(-1 - hop), s, round, result);
  }
  // The node `by` places further in the ring.
  int ring(int by) const noexcept { return shifted(node_, by, nodes().count()); }

 private:
  void take_sums(int depth, Scratch& scratch) {
    depth_ = std::min(static_cast<std::size_t>(depth), segments());
    sums_ = scratch.take(Buffer::wide, depth_ * carried_);
    others_ = scratch.take(raw_buffer(request_), carried_ * (locals() - 1));
  }
  std::size_t locals() const noexcept { return static_cast<std::size_t>(nodes().size(node_)); }
  int neighbor(int local) const noexcept { return nodes().rank(node_, local); }
  Rails::Range mine(int share, std::size_t s) const { return rails_->carried(node_, local_, share, s); }

  template <class Visit>
  void each_carried(int local, std::size_t s, Visit visit) const {
    each_carried_on(node_, local, s, visit);
  }
  template <class Visit>
  void each_carried_on(int node, int local, std::size_t s, Visit visit) const {
    for (int share = 0; share < rails_->shares(); ++share)
      rails_->each_piece(share, s, rails_->carried(node, local, share, s), visit);
  }
  // visit(peer, piece), for what this rank and a rank of that node both carry.
  template <class Visit>
  void each_shared(int node, int share, std::size_t s, Visit visit) const {
    const Rails::Range here = mine(share, s);
    for (int local = 0; local < nodes().size(node); ++local) {
      const Rails::Range there = rails_->carried(node, local, share, s);
      const Rails::Range both{std::max(here.begin, there.begin), std::min(here.end, there.end)};
      if (both.begin >= both.end) continue;
      rails_->each_piece(share, s, both, [&](const Piece& piece) { visit(nodes().rank(node, local), piece); });
    }
  }
  // visit(carrier, piece), for what ranks of that node carry: on the root for all of them, on another for its own.
  template <class Visit>
  void each_of_root(int node, std::size_t s, Visit visit) const {
    for (int local = 0; local < nodes().size(node); ++local) {
      const int carrier = nodes().rank(node, local);
      if (carrier == request_.root || (request_.rank != request_.root && request_.rank != carrier)) continue;
      each_carried_on(node, local, s, [&](const Piece& piece) { visit(carrier, piece); });
    }
  }

  // The inputs of this rank and the others of its node for what it carries.
  Slice contribution(int local, const Piece& piece, std::size_t s) const {
    if (local == local_) return piece.in(Buffer::input);
    const auto slot = static_cast<std::size_t>(local < local_ ? local : local - 1);
    return others_.part(slot * carried_ + place_of(piece, s), piece.count);
  }
  Slice sum(const Piece& piece, std::size_t s) const {
    return sums_.part(s % depth_ * carried_ + place_of(piece, s), piece.count);
  }
  // The sum of this node alone.
  Slice own(const Piece& piece, std::size_t s) const { return locals() == 1 ? piece.in(Buffer::input) : sum(piece, s); }

  PlanRequest request_;
  std::shared_ptr<const Rails> rails_;  // shared: plans are copied, this never changes
  int node_ = 0, local_ = 0;
  std::vector<std::size_t> starts_;  // of shares, among what this rank carries
  std::size_t carried_ = 0, most_ = 0;
  std::size_t depth_ = 1;
  Slice sums_, others_;
  std::vector<Slice> landings_;
};

// In round r, segment s is at stage r - s: stage(k, s, round). All ranks have the same rounds.
template <class Stage>
Plan pipelined(std::size_t segments, int stages, const Scratch& scratch, Stage stage) {
  const std::size_t rounds = segments + static_cast<std::size_t>(stages) - 1;
  return make_plan(rounds, scratch, [=](std::size_t index, Round& round) {
    for (int k = 0; k < stages; ++k) {
      const auto behind = static_cast<std::size_t>(k);
      if (index >= behind && index - behind < segments) stage(k, index - behind, round);
    }
  });
}

}  // namespace col::plan
