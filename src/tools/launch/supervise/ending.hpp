// When and how the ranks of one node are ended: decisions only, no system calls.
//
// clang-format off
//   a rank fails   ── stacks, if wanted ── others in col calls get 250 ms to see it ──► TERM ── grace ──► KILL
//   a time limit   ── stacks, if wanted ──────────────────────────────────────────────► TERM ── grace ──► KILL
//   SIGINT         ── forwarded ── grace, or a second signal ─────────────────────────► TERM ── grace, or a third ──► KILL
//   SIGTERM, SIGHUP, SIGQUIT ── forwarded ── term grace ──────────────────────────────────────────────► KILL
//   the reader of our output is gone ─────────────────────────────────────────────────► TERM ── grace ──► KILL
//   no rank is left, and others sleep ────────────────────────────────────────────────► TERM ── grace ──► KILL
//   the launcher was killed, or could not start all ranks ────────────────────────────────────────────► KILL
// clang-format on
#pragma once

#include <array>
#include <chrono>
#include <optional>
#include <vector>

#include "core/clock/clock.hpp"
#include "launch/job/job_result.hpp"
#include "launch/job/job_spec.hpp"

namespace col::launch {

class Ending {
 public:
  using Clock = core::Clock;
  using Time = Clock::time_point;
  static constexpr std::chrono::milliseconds kSettle{250};
  static constexpr std::chrono::milliseconds kExamine{10'000};
  // After SIGKILL, only a process that is stuck in the kernel takes longer.
  static constexpr std::chrono::milliseconds kKillWait{5000};

  struct Rules {
    std::chrono::milliseconds grace{5'000};
    std::chrono::milliseconds term_grace{25'000};
    bool keep_going = false;           // a failed rank does not end the others
    bool examine_failures = false;     // take stacks before ranks are ended because one has failed
    bool examine_time_limits = false;  // take stacks before ranks are ended because a time limit has passed
  };
  explicit Ending(const Rules& rules) : rules_(rules) {}

  enum class Phase { running, examining, settling, interrupted, terminating, killing, given_up };

  // A rank has ended with a nonzero status. `collateral`: because another one had failed. `by_signal`: the signal that
  // killed it, or 0. `others_may_notice`: other living ranks use col, so they will see that this one is lost.
  struct Failure {
    int rank = -1;
    bool collateral = false;
    int by_signal = 0;
    bool others_may_notice = false;
  };
  void on_failure(const Failure& failure, Time now);
  // A rank on another node, or more than the job can lose.
  void on_failure_elsewhere(bool others_may_notice, Time now);
  void on_over(Time now);  // only those are left that nobody can take in any more: this is no cause
  void on_cut_off(bool others_may_notice, Time now);  // from the other nodes
  void on_signal(int signal, Time now);               // a signal that ends the job
  void on_limit(EndCause cause, Time now);            // timed_out, exit_timed_out
  void on_output_closed(Time now);
  void kill(EndCause cause, Time now);
  // Stacks have been taken, or cannot be taken: the examining phase has ended.
  void on_examined(Time now);

  // The signal that all living ranks must get now; 0 for none. Call it after every event and at deadline().
  int due(Time now);
  std::optional<Time> deadline() const { return deadline_; }

  Phase phase() const noexcept { return phase_; }
  EndCause cause() const noexcept { return cause_; }
  bool is_ending() const noexcept { return cause_ != EndCause::none; }
  int signal() const noexcept { return signal_; }  // the signal that interrupted the job, or 0
  // the first rank that failed by itself, else the first that failed; or -1
  int culprit() const noexcept { return culprit_; }
  // whether one arrived while the job was already ending
  bool signalled_after() const noexcept { return later_signal_; }

 private:
  void enter(Phase phase, int signal, std::optional<Time> deadline);
  void note(const Failure& failure);
  void examine_or_go_on(bool examine, Time now);
  void go_on(Time now);
  void terminate(Time now);

  Rules rules_;
  Phase phase_ = Phase::running;
  EndCause cause_ = EndCause::none;
  int signal_ = 0;
  int culprit_ = -1;
  bool culprit_is_collateral_ = false;
  bool settles_ = false;  // after the examination
  bool later_signal_ = false;
  int pending_ = 0;
  std::array<bool, 65> sent_{};
  std::optional<Time> deadline_;
};

// Faults for drills (--inject): which rank gets which signal, and when. It only decides; it makes no system calls.
//
// A slowed rank runs for a part of each period and is stopped for the rest.
class Injector {
 public:
  using Time = core::Clock::time_point;
  static constexpr std::chrono::milliseconds kPeriod{40};

  // Takes only the injections for ranks first_rank … first_rank + count - 1.
  Injector(const std::vector<Injection>& injections, int first_rank, int count);

  void on_started(int rank, Time now);
  void on_ended(int rank);

  struct Act {
    int rank = 0;
    int signal = 0;
    bool announced = true;  // worth a line to the user; false for the single stops of a slowed rank
  };
  // Returns the acts that are due at `now`, in order. Call it at deadline().
  std::vector<Act> due(Time now);
  std::optional<Time> deadline() const;

 private:
  struct Planned {
    Injection injection;
    std::optional<Time> at = {};  // when the next act is due; nothing: not started, or finished
    bool stopped = false;
    bool began = false;
  };
  void advance(Planned& planned, std::vector<Act>& acts);

  std::vector<Planned> planned_;
};

}  // namespace col::launch
