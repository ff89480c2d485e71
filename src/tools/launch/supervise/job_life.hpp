// The life of a job on one node: in which stage it is, and what ends that stage. Decisions only, no system calls.
//
// clang-format off
//   the only node      starting ── running ── draining ── writing ──► again, or the report
//   one of several     joining ──► awaiting ──► starting … writing ──► awaiting … ──► parting ── collecting ──► the report
// clang-format on
//
// While there are ranks, `Ending` says how they are ended: which signal they get, and when.
#pragma once

#include <optional>

#include "core/clock/clock.hpp"
#include "launch/job/job_result.hpp"

namespace col::launch {

class JobLife {
 public:
  using Time = core::Clock::time_point;

  enum class Stage {
    joining,     // pauses between two tries to reach the other nodes
    awaiting,    // what the meeting of the nodes says next
    starting,    // pauses between two ranks, while the job is stopped
    running,     // until no rank lives
    draining,    // reads what the ranks have left in their pipes
    writing,     // to the user, who may be slow; the report, too
    parting,     // the other nodes hear that the job is over
    collecting,  // what their ranks have printed comes
  };
  void enter(Stage stage, Time now, std::optional<Time> limit = std::nullopt);
  Stage stage() const noexcept { return stage_; }

  // All that a stage may wait for, as it is now.
  struct Facts {
    bool ranks_live = false;   // and have not been given up
    bool ranks_end = false;    // they are being ended
    bool interrupted = false;  // because of a signal
    bool signalled = false;    // a signal came while they were being ended
    bool pipes_open = false;   // of ranks; in `collecting`, those of other nodes too
    bool unwritten = false;    // output
    bool no_news = false;      // of the other nodes, which can be reached
    bool others_run = false;   // launchers of other nodes that this one has started
    bool serves = false;       // this node, the meeting
  };
  // Says whether the stage goes on.
  bool lasts(const Facts& facts, Time now);
  // The time until which it does, if there is one.
  std::optional<Time> deadline() const noexcept { return deadline_; }
  bool is_late(Time now) const noexcept { return deadline_ && now >= *deadline_; }

  // The process that the user has started is gone.
  void on_front_gone() noexcept { front_is_gone_ = true; }
  bool front_is_gone() const noexcept { return front_is_gone_; }
  // ^Z, and its end.
  void set_stopped(bool stopped) noexcept { stopped_ = stopped; }
  // A signal that ends the job came while there were no ranks.
  void on_signal(int signal) noexcept;
  int signal() const noexcept { return signal_; }  // the first one; 0: none
  // How the job ended, if nothing but this was heard.
  JobResult cut_short() const;

  // One ^C may reach the launchers of all nodes: of each round, a launcher obeys the first that it hears of.
  bool is_new_round() noexcept;           // this launcher has got one more
  bool is_new_round(int round) noexcept;  // another one has got so many

  bool may_start_again(EndCause cause, int restarts, int max_restarts) const noexcept;

 private:
  Stage stage_ = Stage::starting;
  std::optional<Time> deadline_;
  bool front_is_gone_ = false;
  bool stopped_ = false;
  int signal_ = 0;
  int signals_ = 0;      // how many came while there were no ranks
  int own_signals_ = 0;  // how many this launcher got that end the job
  int round_ = 0;        // the largest number of any node
};

}  // namespace col::launch
