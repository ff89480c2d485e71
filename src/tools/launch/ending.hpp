// When and how a job ends: decisions only, no system calls.
//
//   a rank fails  ── others in col calls get 250 ms to see peer_lost ──► TERM ── grace ──► KILL
//   SIGINT        ── forwarded ── grace, or a second signal ──────────► TERM ── grace, or a third SIGINT ──► KILL
//   SIGTERM, SIGHUP, SIGQUIT ── forwarded ── grace ─────────────────────────────────────► KILL
//   the reader of our output is gone ─────────────────────────────────► TERM ── grace ──► KILL
//   the launcher was killed, or could not start all ranks ──────────────────────────────► KILL
#pragma once

#include <array>
#include <chrono>
#include <optional>

namespace col::launch {

class Ending {
 public:
  using Clock = std::chrono::steady_clock;
  using Time = Clock::time_point;
  static constexpr std::chrono::milliseconds kSettle{250};
  static constexpr std::chrono::milliseconds kGrace{5000};
  // After SIGKILL: only a process stuck in the kernel takes longer.
  static constexpr std::chrono::milliseconds kKillWait{5000};

  enum class Phase { running, settling, interrupted, terminating, killing, given_up };
  enum class Why { not_ending, rank_failed, interrupted, output_closed, launcher_failed };

  // A rank ended with a nonzero status. `collateral`: because another one had failed; `by_signal`: the signal that
  // killed it, or 0; `others_may_notice`: other living ranks use col, and so will see that this one is lost.
  struct Failure {
    int rank = -1;
    bool collateral = false;
    int by_signal = 0;
    bool others_may_notice = false;
  };
  void on_failure(const Failure& failure, Time now);
  void on_signal(int signal, Time now);  // one that ends the job
  void on_output_closed(Time now);
  void kill(Why why, Time now);

  // The signal that all living ranks are to get now, 0 for none. Call it after every event and at deadline().
  int due(Time now);
  std::optional<Time> deadline() const { return deadline_; }

  Phase phase() const noexcept { return phase_; }
  Why why() const noexcept { return why_; }
  int signal() const noexcept { return signal_; }                  // that interrupted the job, or 0
  int culprit() const noexcept { return culprit_; }                // whose status decides the exit code, or -1
  bool signalled_after() const noexcept { return later_signal_; }  // one arrived while the job was ending already

 private:
  void enter(Phase phase, int signal, std::optional<Time> deadline);
  void terminate(Time now);

  Phase phase_ = Phase::running;
  Why why_ = Why::not_ending;
  int signal_ = 0;
  int culprit_ = -1;
  bool culprit_is_collateral_ = false;
  bool later_signal_ = false;
  int pending_ = 0;
  std::array<bool, 65> sent_{};
  std::optional<Time> deadline_;
};

}  // namespace col::launch
