// Collective calls, one by one: checked, numbered, compared and begun.
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

  // Checks the call, gives it its number, and launches it when it need not block. One that blocks is for run_native().
  // Null if this rank is alone: the call has ended. `over`: null for the lane that serves it.
  PendingPtr begin(Lane* over, Request&& request, const Options& options, bool asynchronous, Piece piece = {});
  // The first part of begin(): checks the call, and decides how it runs. Null as above.
  PendingPtr prepare(Lane* over, Request&& request, const Options& options, bool asynchronous, Piece piece = {});
  // The second part for several calls that need not block, which start together. `part_of`: as of CallForm; it lives
  // forever.
  void begin_together(std::span<const PendingPtr> calls, std::string_view part_of);
  // Gives a call its number.
  void number(Pending& pending);
  // Begins a call that blocks, where that can be done in a moment. Requires: it has its number.
  bool begin_immediate(const Pending& pending);
  // The same for its end: false if it takes longer. Then run_native() goes on. Requires: it has begun so, and others
  // have been told of it.
  bool end_immediate(Pending& pending);
  // Tells others of a call that has its number. `may_be_brief`: it may have ended in a moment. `until`: null for the
  // call's own timeout, within which it is compared.
  void announce(Pending& pending, bool may_be_brief = false, const Deadline* until = nullptr);
  // Runs a backend's own collective to its end; or starts it, if it need not block.
  void run_native(const PendingPtr& call);
  void start_native(const PendingPtr& pending);

  // Asks the channel of a device about a call that it has not counted so far. Throws what check() throws.
  static void ask_device(DeviceOps& gpu, Request& request);

  std::uint64_t last() const { return sequence_; }  // the number of the last collective

 private:
  void start_on_gpu(std::span<const PendingPtr> calls, const Deadline* until);
  void run_alone(const Request& request, const Options& options, Staging* staging);

  Core& core_;
  Lanes& lanes_;
  Stager& stager_;
  Flight& flight_;
  std::uint64_t sequence_;   // collectives so far
  std::uint64_t calls_ = 0;  // hash of them
};

}  // namespace col::group
