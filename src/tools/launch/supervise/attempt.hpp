// One generation of the ranks of this node: their processes, from the first start to the last end. A restart is a new
// Attempt, with its own directory, store and control page.
#pragma once

#include <sys/resource.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <col/job.hpp>
#include <col/trace.hpp>

#include "common/unique_fd.hpp"
#include "launch/job/assignment.hpp"
#include "launch/job/job_spec.hpp"
#include "launch/place/placement.hpp"
#include "launch/pmi/pmi_server.hpp"
#include "launch/processes/environment.hpp"
#include "launch/processes/events.hpp"
#include "launch/processes/job_directory.hpp"
#include "launch/processes/limits.hpp"
#include "launch/processes/program.hpp"
#include "launch/report/job_story.hpp"
#include "launch/supervise/ending.hpp"
#include "launch/supervise/epochs.hpp"
#include "launch/times/call_watch.hpp"

namespace col::launch {

struct AttemptParts {
  const JobSpec& spec;
  const std::vector<std::string>& programs;  // paths, as many as spec.programs
  const Placement& placement;
  Assignment assignment;
  // names the job directory; it belongs to this launcher only, because nodes may share a file system
  std::string directory;
  std::string host;
  rlimit open_files{};  // the limit with which the launcher was started
  Events& events;
  Ending::Time job_began{};
  std::function<void(int local_rank, bool failed)> on_end;               // a rank has ended
  std::function<void(const PmiServer::Entries& put)> on_all_in_barrier;  // of PMI, with what the ranks have put
};

class Attempt {
 public:
  using Clock = Ending::Clock;
  using Time = Ending::Time;

  // Makes the job directory and the control page. Throws LaunchError (125), and then leaves nothing behind.
  explicit Attempt(const AttemptParts& parts);
  // Removes the directory. The ranks must be gone.
  ~Attempt();
  Attempt(const Attempt&) = delete;
  Attempt& operator=(const Attempt&) = delete;

  const Assignment& assignment() const noexcept { return parts_.assignment; }
  Ending& ending() noexcept { return ending_; }
  Injector& injector() noexcept { return injector_; }
  int omp_threads() const noexcept { return environment_.omp_threads(); }
  int cpus() const noexcept { return environment_.cpus(); }
  int local_ranks() const noexcept { return parts_.assignment.local_ranks; }
  int global(int place) const noexcept { return number_of(parts_.assignment, place); }
  const Places& places() const noexcept { return places_; }
  // A spare, or in the place of one that was lost: it has no rank until the others take it in.
  bool joins(int place) const { return place >= local_ranks() || places_.is_again(place); }
  RankNames names(int place) const;

  // The ranks of all nodes are in a barrier of PMI.
  void end_barrier(const PmiServer::Entries& all) {
    if (pmi_) pmi_->end_barrier(all);
  }

  // Starts one rank. The caller closes its descriptors. Throws LaunchError if the program cannot be executed.
  SpawnResult spawn(int local_rank, const ChildDescriptors& descriptors);
  // Registers a rank that was spawned. Returns false if the system refuses an event for its end (errno says why): then
  // SIGCHLD must report it.
  bool watch(int local_rank, pid_t pid);

  int living() const noexcept { return living_; }
  const RankStatus& status(int local_rank) const { return ranks_[static_cast<std::size_t>(local_rank)].status; }
  int rank_of(pid_t pid) const;           // the local rank with this pid that has not been reaped; -1: none
  bool has_event(int local_rank) const;   // for its end
  std::vector<int> living_ranks() const;  // global; without those that sleep
  // When the first rank ended well, if others have not ended yet.
  std::optional<Time> first_good_end() const noexcept { return first_good_end_; }

  // Reaps the rank if it has ended. Its own event does, where it has one.
  void reap(int local_rank);

  // The places in which the caller is to start another process now.
  std::vector<int> due_starts(Time now) { return ending_.is_ending() ? std::vector<int>() : places_.due(now); }
  void give_up_start(int place, Time now) { places_.on_ended(place, Places::End::failed, now); }
  // Kills those that the others have left out, and that have neither noticed nor ended in their time.
  std::vector<int> end_left_out(Time now);
  // The epochs that were told of, in a job that has them.
  const std::vector<EpochStory>& epochs();
  bool has_slept(int place) const { return !ranks_[static_cast<std::size_t>(place)].was_in; }
  // Ends those that sleep when nobody is left who could take them in. Returns true if it does so now.
  bool end_sleepers(Time now);
  bool never_renewed() const;  // though a rank was lost

  void signal_all(int signal);     // for signals that end them: to their process groups
  void notify_all(int signal);     // only to the rank processes
  void set_stopped(bool stopped);  // ^Z: their process groups
  void signal_group(int local_rank, int signal);
  // Kills a rank that has asked for that, and takes its end as an exit with that code.
  void end_with(int local_rank, int exit_code);

  // Why the job ends, for the ranks to see. The first cause stays.
  void abort(const AbortCause& cause) { page_->abort(cause); }
  bool others_may_notice() const;  // a living rank uses col
  // Records what the ranks are doing in col, for the report. Only the first call counts.
  void remember_calls();
  // Follows the calls of the ranks, if the report is to tell how long they took (InspectSpec::times).
  std::optional<Time> next_look() const { return watch_ ? std::optional(watch_->due()) : std::nullopt; }
  void look_at_calls(Time now);
  std::vector<pid_t> living_pids() const;
  // Adds the calls that the ranks have kept, if they were asked to. Throws io, mismatch.
  void add_traces(Timeline& timeline) const;
  void keep_stack(pid_t pid, Stack stack);

  std::vector<RankStory> stories() const;
  // At the end: adds what was found by look_at_calls(). `distance`: as CallTimes::distance.
  void add_times(std::vector<RankStory>& stories, std::optional<double> distance);
  // The same, with what the ranks do at this moment, and what they have used.
  std::vector<RankStory> stories_now(std::size_t most_calls, bool with_use);
  // Returns false if a part of the directory could not be removed.
  bool remove_directory() noexcept;
  const std::string& directory() const noexcept { return directory_.path(); }

 private:
  struct Rank {
    RankStatus status;
    bool living = false;           // not reaped
    tools::UniqueFd pidfd;         // empty if the system refuses it
    std::optional<int> exit_code;  // that it asked to be ended with
    Time started{};
    std::optional<Stack> stack;
    std::optional<std::uint64_t> epoch = {};  // of the job's group, in which it is, or was when it ended
    bool was_in = false;                      // it was a rank, and has ended
    // How the rank has ended in whose place this process sleeps, and in which epoch.
    std::optional<RankStatus> before = {};
    std::optional<std::uint64_t> epoch_before = {};
  };

  void on_pmi(int local_rank);
  bool is_failure(Rank& rank, int local_rank, Time now);
  bool uses_col(int local_rank) const;  // has joined a job of libcol and has not left it in good order
  void note_taken();
  void on_epoch(const EpochStory& epoch);
  bool has_left(int place) const;
  bool is_behind(int place, std::uint64_t epoch) const;
  const Program& program_of(int local_rank, std::size_t& index) const;

  AttemptParts parts_;
  JobDirectory directory_;
  std::shared_ptr<ControlPage> page_;
  Environment environment_;
  EventSource ends_;              // of ranks
  std::optional<PmiServer> pmi_;  // nothing: the ranks get none, and those that join never
  Ending ending_;
  Places places_;
  std::optional<EpochLog> epochs_;  // nothing: the ranks do not go on in epochs
  std::uint64_t last_epoch_ = 0;
  Injector injector_;
  OutOfMemoryWatch memory_;
  std::optional<CallWatch> watch_;
  UseMeter use_;
  std::vector<int> changed_signals_;  // signals changed in this process that the ranks must not inherit
  std::vector<Rank> ranks_;
  std::vector<std::vector<std::string>> debugged_;  // the commands of ranks under a debugger
  int living_ = 0;
  std::vector<RankStory> remembered_;  // what the ranks were doing when the job began to end; empty: nobody has looked
  bool removed_ = false;               // the directory
  std::optional<Time> first_good_end_;
};

}  // namespace col::launch
