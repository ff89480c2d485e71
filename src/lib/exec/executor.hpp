// Runs one rank's plan over a channel, without waiting: its owner calls progress() until the plan has ended.
//
// The messages of a round are posted together. Local steps that need none of them run meanwhile. The receives of the
// next round are posted early if no step of this round touches their memory. After its first run, running a plan again
// allocates nothing here.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <col/channel.hpp>
#include <col/plan.hpp>

#include "core/trace/trace.hpp"
#include "exec/fault.hpp"
#include "exec/memory.hpp"

namespace col::exec {

// An executed step. Steps are in the order in which they began.
struct Executed {
  std::size_t round = 0;
  Step step;
};

// Where the steps of a plan are written for a timeline.
struct StepTrace {
  core::Trace* trace = nullptr;  // null: nobody wants it
  core::Trace::Cursor* cursor = nullptr;
  const std::vector<PeerInfo>* peers = nullptr;  // of the group
  core::TracedCall call = {};
};

struct Job {
  std::shared_ptr<const Plan> plan;  // shared with the cache it comes from
  Operands operands;
  std::uint64_t slot = 0;  // the slot of all its messages; no other operation of the group uses it at the same time
  const Fault* fault = nullptr;
  std::uint64_t operation = 0;             // the number of the collective, for faults
  std::vector<Executed>* trace = nullptr;  // gets every step; null: no trace
  StepTrace timeline = {};
};

class Executor {
 public:
  // Requires: nothing is running. Posts the first messages. Throws resource, and what the channel throws.
  void start(Channel& channel, Job job);
  // Goes as far as it can without waiting. Returns true if the plan has ended. Throws what the channel throws; the
  // execution is then over.
  bool progress();
  // Requires: progress() returned false. Blocks until one of the messages that it waits for has arrived.
  void wait(WaitContext& wait);

  // Drops the running plan. Requires: the channel is broken, or nothing runs.
  void abandon() noexcept { end(); }

  bool running() const noexcept { return channel_ != nullptr; }
  // The present state: how many steps have begun, and the peer of a message that it waits for (-1 if there is none).
  int step() const noexcept { return steps_begun_; }
  int peer() const noexcept;
  // Requires: it runs.
  CallProgress progress_made() const noexcept {
    return {static_cast<std::int32_t>(index_), static_cast<std::int32_t>(job_.plan->rounds), bytes_done_};
  }

 private:
  struct Message {
    Ticket ticket;
    Slice slice;
    int peer = -1;
    bool receives = false;
    bool done = false;
    std::uint64_t began = 0;  // ticks, if there is a timeline
    std::size_t round = 0, index = 0;
  };

  void load(std::size_t index);
  void begin_round();
  void post_early();
  void post(std::size_t round, const Step& step, std::vector<Message>& messages);
  void finish(Message& message);
  void trace_step(std::uint64_t began, Step::Kind kind, int peer, std::size_t round, std::size_t index,
                  std::uint64_t bytes);
  void begin_step(std::size_t round, const Step& step);
  bool test_messages();
  bool run_local_steps();
  bool may_run(const Step& step) const;
  bool touches(const Step& step, const Slice& slice) const;
  void end() noexcept;

  Channel* channel_ = nullptr;
  Job job_;
  Memory memory_;
  std::size_t index_ = 0;          // of the current round
  Round round_, next_;             // next_ holds round index_ + 1 when there is one
  std::vector<Message> messages_;  // of the current round
  std::vector<Message> early_;     // receives of the next round, posted already
  std::size_t early_steps_ = 0;    // how many receives of next_, in order, those are
  std::size_t next_local_ = 0;     // step of round_ that is looked at next
  int steps_begun_ = 0;
  std::uint64_t bytes_done_ = 0;
};

}  // namespace col::exec
