// The collective calls of a group, as its user makes them.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include <col/group.hpp>
#include <col/request.hpp>

#include "group/flight/access.hpp"
#include "group/run/starter.hpp"

namespace col::group {

// The call as a backend gets it. Throws invalid_argument if it is no collective, or has no order that is there.
// `order`: of the group.
Request request_of(const Call& call, const Options& options, Order order);

class Collectives {
 public:
  Collectives(Core& core, Lanes& lanes, Flight& flight, Access& access, Starter& starter)
      : core_(core), lanes_(lanes), flight_(flight), access_(access), starter_(starter) {}

  // Blocks until the call has ended.
  void run(const Call& call, const Options& options);
  // The same for a few words in host memory, for ranks that all have them there. In a group of GPUs, it uses no GPU.
  void run_on_host(Request request, const Options& options);
  // Null if this rank is alone: the call has ended.
  PendingPtr start(const Call& call, const Options& options);
  // What start_prepared() begins, as often as wanted, one after the other. It has ended. Null where every start has to
  // be a call of its own.
  PendingPtr prepare(const Call& call, const Options& options);
  void start_prepared(const PendingPtr& pending, const Options& options);
  // From now on, start() collects calls: <col/coalescing.hpp>.
  void begin_scope();
  // Starts them. Returns what ends when all have; null if there are none.
  PendingPtr end_scope();
  // Makes none of them. Their error is `why`. Requires: the group's lock is held.
  void drop_collected(const Error& why) noexcept;
  void cancel_scope();
  bool is_in_scope(ConstTensorView memory) const;

  // As run(), over the lane; null: over that which serves the call. Requires: this thread has a Use.
  void run_over(Lane* lane, Request request, const Options& options);

  // No Use of the group: another thread may be in a call of it.
  std::string explain(Collective collective, std::size_t bytes, DType dtype, const Options& options);
  std::vector<std::string> names(Collective collective) const { return lanes_.own().dispatcher.names(collective); }

 private:
  using Kept = std::array<PendingPtr, 2>;  // the last one, and an older one
  template <class AnyCall>
  Kept& kept_beside(const AnyCall& call);
  void begin_again(Pending& known, const Options& options);
  void keep(const PendingPtr& pending);

  // coalesce.cpp
  struct Collected {
    PendingPtr pending;
    ConstTensorView read, written;  // the user's buffers; one of them if it is in place
  };
  PendingPtr collect(const Call& call, const Options& options);
  void check_apart(const std::vector<Collected>& calls) const;
  void check_captures(const std::vector<Collected>& calls) const;

  // pieces.cpp: long calls over the host in a group whose ranks may give memory of GPUs are cut into pieces, so that
  // one is copied while another is on its way.
  std::size_t elements_of_piece(const Lane& lane, const Request& request, const Options& options) const;
  void run_in_pieces(Lane& lane, const Request& request, const Options& options, std::size_t elements);
  PendingPtr begin_piece(Lane& lane, Request&& request, const Options& options, Piece piece);
  void fetch_ahead(Pending& pending);
  void run_piece(const PendingPtr& piece, const Deadline& deadline);

  Core& core_;
  Lanes& lanes_;
  Flight& flight_;
  Access& access_;
  Starter& starter_;
  // Native calls that may come again.
  static constexpr int kKeptBits = 6;
  std::array<Kept, std::size_t{1} << kKeptBits> kept_;
  std::vector<Collected> collected_;  // in the order of the calls
};

}  // namespace col::group
