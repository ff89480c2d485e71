// Runs one rank's plan over a channel, without waiting: whoever owns it calls progress() until it has ended.
//
// The messages of a round are posted together; local steps that need none of them run meanwhile; the receives of the
// next round are posted early where nothing of this round touches their memory. After the first run of a plan, running
// it again allocates nothing here.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <col/backend.hpp>
#include <col/plan.hpp>

#include "exec/fault.hpp"
#include "exec/memory.hpp"

namespace col::exec {

// A step that was executed, in the order in which it was begun.
struct Executed {
  std::size_t round = 0;
  Step step;
};

struct Job {
  std::shared_ptr<const Plan> plan;  // shared with the cache it comes from
  Operands operands;
  std::uint64_t slot = 0;  // of all its messages: no other operation of the group uses it at the same time
  const Fault* fault = nullptr;
  std::uint64_t operation = 0;             // number of the collective, for the fault
  std::vector<Executed>* trace = nullptr;  // gets every step; null: nobody wants to know
};

class Executor {
 public:
  // Requires: nothing is running. Posts the first messages. Throws resource, and what the channel throws.
  void start(Channel& channel, Job job);
  // Goes as far as it can without waiting; true when the plan has ended. Throws what the channel throws, after which
  // the execution is over.
  bool progress();
  // Requires: progress() returned false. Blocks until one of the messages it waits for has arrived.
  void wait(WaitContext& wait);

  // Forgets what runs. Requires: the channel is broken, or nothing runs.
  void abandon() noexcept { end(); }

  bool running() const noexcept { return channel_ != nullptr; }
  // What it is at: how many steps it has begun, and the peer of a message it waits for (-1 when there is none).
  int step() const noexcept { return steps_begun_; }
  int peer() const noexcept;

 private:
  struct Message {
    Ticket ticket;
    Slice slice;
    int peer = -1;
    bool receives = false;
    bool done = false;
  };

  void load(std::size_t index);
  void begin_round();
  void post_early();
  void post(const Step& step, std::vector<Message>& messages);
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
};

}  // namespace col::exec
