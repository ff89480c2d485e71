// Collectives that come again with the same buffers: prepared once, started as often as wanted. <col/group.hpp>
// includes it.
//
//   col::PreparedCall sum = world.prepare({.collective = col::Collective::allreduce, .in = in, .out = out});
//   for (int step = 0; step < steps; ++step) {
//     fill(in);
//     sum.start();
//     overlap();
//     sum.wait();
//   }
//
// They are the persistent collectives of MPI-4 (MPI_Allreduce_init). Preparing makes all checks and decisions, so a
// start makes none. Where the ranks share memory, a start allocates nothing.
#pragma once

#include <memory>

#include <col/export.hpp>
#include <col/types.hpp>
#include <col/work.hpp>

namespace col {

// A collective of this rank, with its buffers and options. Group::prepare() makes it.
//
// Every start is an i-form of that call: it counts in the order of the group's collectives, and it meets the i-forms
// that other ranks start, prepared or not. A rank that makes another call is a mismatch, named as in any call. The
// rules of <col/work.hpp> about progress, dropped operations and buffers hold: an object that is destroyed while its
// call is in progress drops it as a Work does.
//
// Thread safety: as for Group. One thread at a time may use an object.
class COL_EXPORT PreparedCall {
 public:
  PreparedCall() noexcept;  // no call: start() throws invalid_argument, and the rest has nothing to wait for
  PreparedCall(PreparedCall&& other) noexcept;
  PreparedCall& operator=(PreparedCall&& other) noexcept;
  ~PreparedCall();

  // Starts the call. Blocks as an i-form does: not for other ranks. The buffers belong to the call until it has ended.
  // Throws invalid_argument if it is in progress, inside a scope of coalesce(), and if another thread uses the group;
  // not_initialized if the group was destroyed; and, as any call, the errors that break groups.
  void start();
  // Blocks until the call that was started last has ended, for its timeout at most, counted from now. Returns at once
  // if none was started. Throws as Work::wait().
  void wait();
  // The same for `budget` at most. Returns false if it has not ended by then; it goes on.
  bool wait_for(Duration budget);
  // As Work::test() and Work::has_ended(): true if none was started.
  bool test();
  bool has_ended() const noexcept;
  // As Work::wait(Stream): on GPUs, what the stream gets from now on comes after the call.
  void wait(Stream stream);
  // The handle of the call that was started last, for wait_all(), wait_any(), then() and error(). After the next
  // start(), the same handle stands for the new call.
  Work work() const;

 private:
  friend class Group;
  struct State;
  explicit PreparedCall(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace col
