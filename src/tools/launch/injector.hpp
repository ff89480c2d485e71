// Faults for drills (--inject): which rank gets which signal, and when. It only decides; it makes no system calls.
#pragma once

#include <chrono>
#include <optional>
#include <vector>

#include "launch/job/job_spec.hpp"

namespace col::launch {

// A slowed rank runs for a part of each period and is stopped for the rest.
class Injector {
 public:
  using Time = std::chrono::steady_clock::time_point;
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
  // What is due at `now`, in order. Call it at deadline().
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
