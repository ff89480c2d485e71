// The life of one job inside the watcher process: starts the ranks, passes signals and output on, ends them in order.
#pragma once

#include <sys/resource.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <col/job.hpp>

#include "common/unique_fd.hpp"
#include "launch/ending.hpp"
#include "launch/environment.hpp"
#include "launch/error_file.hpp"
#include "launch/job_directory.hpp"
#include "launch/job_spec.hpp"
#include "launch/output.hpp"
#include "launch/signals.hpp"

namespace col::launch {

// What a job needs that exists before its first rank.
struct JobParts {
  const JobSpec& spec;
  const std::string& program;  // resolved
  const JobDirectory& directory;
  Environment& environment;
  ControlPage& page;
  SignalGate& signals;
  int lifeline;  // non-blocking; one byte per signal that the front got, its end when the front is gone
};

class Supervisor {
 public:
  // Throws LaunchError (125) when the limits of this process do not allow that many ranks.
  explicit Supervisor(const JobParts& parts);

  // Returns when every process of the job is gone and all output is written. Throws LaunchError when a rank could not
  // be started; those that were are gone then, too.
  JobResult run();

 private:
  using Clock = Ending::Clock;
  using Time = Ending::Time;

  struct Rank {
    RankStatus status;
    tools::UniqueFd pidfd;
    Time started{};
  };

  void start_all();
  void start(int rank);
  pid_t spawn_rank(int rank, int stdin_fd, int stdout_fd, int stderr_fd);

  // Handles what has happened, waiting for it until `latest` at most (no limit of its own when empty).
  void step(std::optional<Time> latest);
  void dispatch(std::uint64_t event);
  void on_lifeline();
  void on_forwarded(int signal);
  void set_stopped(bool stopped);
  void on_rank_end(int rank);
  void reap_adopted();
  void signal_ranks(int signal);
  bool uses_col(int rank) const;  // joined a job of libcol and has not left it in good order
  bool others_may_notice() const;

  void drain();
  void end_descendants();
  void flush();
  JobResult result();
  void say_how_it_ended(const JobResult& result);

  JobParts parts_;
  rlimit open_files_;  // as the launcher was started with
  tools::UniqueFd epoll_;
  tools::UniqueFd null_;
  Output output_;
  Ending ending_;
  std::vector<Rank> ranks_;
  int living_ = 0;
  bool more_output_ = false;
  bool child_changed_ = false;
  bool front_is_gone_ = false;
  bool stopped_ = false;  // the ranks, by ^Z
};

}  // namespace col::launch
