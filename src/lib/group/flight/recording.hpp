// The words for others about the operations of a group: in the ring and the record of the control page, and in a
// timeline.
#pragma once

#include <cstdint>

#include <col/job.hpp>

#include "core/job/call_ring.hpp"
#include "exec/executor.hpp"
#include "group/flight/core.hpp"
#include "group/flight/pending.hpp"

namespace col::group {

// Requires for all functions: the group's lock is held.
class Recording {
 public:
  explicit Recording(Core& core) : core_(core) {}

  // Says what this rank does: in its record, or, if the call may have ended in a moment and nothing else is in flight,
  // first in the ring alone.
  void record(Pending& pending);
  void record_briefly(Pending& pending);
  // Its wait begins: it is recorded at length, and its time is taken.
  void on_wait(Pending& pending);
  // The same for one that lasts for a moment, and may come again and again: the first tells.
  void on_brief_wait(Pending& pending);
  // It was started, for this rank to wait for it later.
  void note_start(Pending& pending);
  // It has ended. `is_last`: nothing else is in flight.
  void note_end(Pending& pending, bool is_last);
  // The call is over, and nothing else is in flight.
  void end_record(const Pending& pending) {
    if (!pending.entry && core_.record() != nullptr) core_.record()->end(core_.name());
  }
  // Where its steps go, if somebody wants a timeline.
  exec::StepTrace steps_of(const Pending& pending);

 private:
  const core::CallRing::Words& recorded(Pending& pending) const;
  CallDetails details(const Pending& pending) const;
  void trace(core::Trace& timeline, const Pending& pending, Collective op, const CallDetails& details,
             std::uint64_t number);
  static std::uint16_t traced_algorithm(const Pending& pending);

  Core& core_;
};

}  // namespace col::group
