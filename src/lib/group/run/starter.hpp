// Collective calls, one by one. Each is prepared (checked and decided), then begun (numbered, told to others, and sent
// out as far as that needs no wait), and ended. One that comes again is begun and ended alone.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include <col/device.hpp>
#include <col/group.hpp>
#include <col/job.hpp>
#include <col/request.hpp>

#include "group/flight/flight.hpp"
#include "group/flight/lanes.hpp"
#include "group/flight/stager.hpp"

namespace col::group {

// Requires for all functions: this thread has a Use. If a call fails that others may have begun, the group is broken.
class Starter {
 public:
  Starter(Core& core, Lanes& lanes, Stager& stager, Flight& flight);

  // Checks the call, and decides how it runs. Null if this rank is alone: the call has ended. `over`: null for the lane
  // that serves it.
  PendingPtr prepare(Lane* over, Request&& request, const Options& options, bool asynchronous, Piece piece = {});
  // The channel's part of one that comes again. Requires: the request stays in its place.
  void prepare_native(Pending& pending);
  // Gives it its number, and tells others of it. `comes_again`: it may be told of in brief, as it may have ended in a
  // moment. `until`: null for the call's own timeout, within which it is compared.
  void begin(Pending& pending, bool comes_again, const Deadline* until = nullptr);
  // begin() for one that has ended and comes again. And the whole of one that blocks.
  void begin_again(Pending& known, const Options& options);
  void run_again(const PendingPtr& known, const Options& options);
  // Blocks until one that blocks has ended.
  void end(const PendingPtr& pending);
  // One that need not block goes on by itself from now on.
  void launch(const PendingPtr& pending);
  // begin() and launch() for several, which start together. `part_of`: as of CallForm; it lives forever.
  void begin_together(std::span<const PendingPtr> calls, std::string_view part_of);

  // Asks the channel of a device about a call that it has not counted so far. Throws what check() throws.
  static void ask_device(DeviceOps& gpu, Request& request);

  std::uint64_t last() const { return sequence_; }  // the number of the last collective

 private:
  class Wait;

  void number(Pending& pending) noexcept;
  void run_at_length(const PendingPtr& known, const Options& options);
  void compare_first(Pending& pending, const Deadline* until);
  void start_native(const PendingPtr& pending);
  void start_on_gpu(std::span<const PendingPtr> calls, const Deadline* until);
  void run_alone(Lane& lane, const Request& request, const Options& options, Staging* staging);

  Core& core_;
  Lanes& lanes_;
  Stager& stager_;
  Flight& flight_;
  const bool may_be_brief_;  // whether nothing but the ring has to be told of a call that ends in a moment
  std::uint64_t sequence_;   // collectives so far
  std::uint64_t calls_ = 0;  // hash of them
};

}  // namespace col::group
