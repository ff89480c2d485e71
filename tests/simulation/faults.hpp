// The faults of a simulated job, which its seed chooses, and so the truth about it: who can be blamed for an error.
#pragma once

#include <exception>
#include <string>
#include <utility>
#include <vector>

#include <col/types.hpp>

#include "simulation/random.hpp"
#include "simulation/simulator.hpp"

namespace col::test {

struct Fault {
  enum class Kind {
    kill,        // the rank's process ends, wherever it is
    stop,        // it stands still for a while, as by SIGSTOP
    late,        // it computes for a while, before one of its calls
    cut,         // between two ranks, nothing arrives any more, and neither is told
    reset,       // the same, and both are told
    mute_store,  // the store answers nobody for a while
    slow_store,  // it takes its time for each answer
    lose_store,  // between a rank and the store, nothing arrives for a while
    interrupt    // the user's function that waits call throws there: as of Ctrl-C
  };
  Kind kind = Kind::kill;
  int rank = -1, other = -1;  // other: of a cut and a reset
  int at_call = 0;            // when the ranks together have begun so many calls
  Duration delay = {};        // and some time has passed
  Duration length = {};       // of what ends
};

// The error that that function throws.
struct Interrupted : std::exception {
  const char* what() const noexcept override { return "interrupted"; }
};

std::string describe(const Fault& fault);

// One to three faults, for jobs with that timeout whose ranks make that many calls together.
std::vector<Fault> choose_faults(Random& random, int ranks, int calls, Duration timeout);

// A slow store, or one that a rank has lost.
Fault choose_store_fault(Random& random, int ranks, int calls, Duration timeout);
Fault choose_interrupt(Random& random, int ranks, int calls);

// Everything that has gone wrong so far in a run.
class Truth {
 public:
  using Time = Simulator::Time;

  // The process after those of the ranks has the store; the others are those of newcomers.
  Truth(Simulator& simulator, std::vector<Fault> faults, int ranks, int processes);

  // A rank begins a call. Returns how late it is to be.
  Duration count_call(int rank);
  // Called by that function of the rank. Returns whether it is to throw.
  bool take_interrupt(int rank) {
    const bool is_interrupted = std::exchange(of(rank).is_interrupted, false);
    was_any_interrupted_ = was_any_interrupted_ || is_interrupted;
    return is_interrupted;
  }
  // These happen after their delays, but a rank that is the last one is not killed.
  void strike(const std::vector<Fault>& faults);
  // From now on nothing is wrong any more but with the ranks that have ended.
  void mend();

  bool is_cut(int a, int b) const;    // now
  bool is_reset(int a, int b) const;  // now
  // True if the store has been mute or slow since that time, for any rank.
  bool was_store_mute_since(Time since) const {
    return store_troubles_ > 0 || (had_store_trouble_ && store_trouble_ended_ >= since);
  }
  bool is_store_slow() const { return is_slow_; }
  Time ended_at(int rank) const;  // max(): it has not been killed
  // How long the rank has stood still since that time.
  Duration stopped_since(int rank, Time since) const;
  // True if the rank has stood still for so long, before calls or in them, that others may have given up.
  bool has_been_late(int rank) const;
  // True if something was wrong with that rank, or with a connection of it.
  bool may_be_blamed(int rank) const;
  bool any() const { return any_; }  // of any kind
  bool was_any_interrupted() const { return was_any_interrupted_; }
  bool is_any_silent() const { return !cuts_.empty(); }
  // True if ranks have been killed, and nothing else was wrong: then each error can say which.
  bool are_all_kills() const { return any_ && are_all_kills_; }
  int kills() const { return kills_; }

 private:
  struct Rank {
    bool is_to_blame = false, is_interrupted = false;
    Duration late = {};  // in all
    Time ended = Time::max(), stopped = Time::max();
    std::vector<std::pair<Time, Time>> stops;
  };
  void happen(const Fault& fault);
  void go_on(int rank);
  void begin_store_trouble();
  void end_store_trouble();
  int store() const { return store_; }
  Rank& of(int rank) { return ranks_[static_cast<std::size_t>(rank)]; }
  const Rank& of(int rank) const { return ranks_[static_cast<std::size_t>(rank)]; }

  Simulator& simulator_;
  std::vector<Fault> faults_;  // that have not begun
  const int store_;
  int calls_ = 0, kills_ = 0;
  std::vector<Rank> ranks_;  // by process
  std::vector<std::pair<int, int>> cuts_, resets_;
  std::vector<int> without_store_;  // ranks that have lost it
  int store_troubles_ = 0;          // now
  Time store_trouble_ended_ = {};
  bool is_mute_ = false, is_slow_ = false, had_store_trouble_ = false, any_ = false, are_all_kills_ = true,
       is_mended_ = false, was_any_interrupted_ = false;
};

}  // namespace col::test
