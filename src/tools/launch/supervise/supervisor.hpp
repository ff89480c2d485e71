// The life of a job on this node, inside the watcher process: starts the ranks, passes on signals and output, ends the
// ranks in order, and starts them again if a restart is wanted.
//
//   Supervisor ─┬─ NodeJob      what all of them know: the output, the link to other nodes, the Attempt whose ranks run
//               ├─ JobInput     who reads what the user types
//               ├─ OtherNodes   the launchers of other hosts, and where they meet
//               ├─ Asking       what do the ranks do? by coljob, by a signal, by another node
//               └─ Traces, StackTaker, MetricsServer
//
// Each has its own descriptors, and hears of their events itself (EventSource). Two decide, and have none: JobLife, in
// which stage the job is, and Ending, which signal the ranks get.
#pragma once

#include <memory>
#include <optional>

#include "launch/processes/events.hpp"
#include "launch/processes/job_directory.hpp"
#include "launch/processes/program.hpp"
#include "launch/supervise/asking.hpp"
#include "launch/supervise/job_input.hpp"
#include "launch/supervise/metrics_server.hpp"
#include "launch/supervise/node_job.hpp"
#include "launch/supervise/other_nodes.hpp"
#include "launch/supervise/traces.hpp"

namespace col::launch {

class Supervisor {
 public:
  // Throws LaunchError if the limits of this process do not allow this number of ranks, or if something requested is
  // missing.
  explicit Supervisor(const JobParts& parts);

  // Returns when every process of the job on this node is gone, and all output is written. Throws LaunchError if a rank
  // could not be started; ranks that were started are then gone too.
  JobResult run();

 private:
  using Clock = NodeJob::Clock;
  using Time = NodeJob::Time;
  using Stage = JobLife::Stage;

  // supervisor.cpp: what happens while a stage lasts
  void step(std::optional<Time> latest);
  void wait_in(Stage stage);
  JobLife::Facts facts() const;
  std::optional<Time> next_deadline() const;
  void on_lifeline();
  void on_forwarded(int signal);
  void on_stop_signal(bool stopped);
  void on_rank_end(int local_rank, bool failed);
  void say_how_it_goes_on(int place);
  void mind_places(Time now);
  void on_all_in_barrier(const PmiServer::Entries& put);
  void reap_adopted();
  void do_due(Time now);
  void check_limits(Time now);
  void look_into_survivors(Time now);

  // supervisor_run.cpp: one stage after the other
  void serve_metrics();
  void meet_nodes();
  JobResult run_alone();
  JobResult run_with_others();
  Assignment assignment_alone() const;
  LinkEvent next_news(const JobStory* ended);
  void watch_only();
  void end_watching();
  void forget_askers();
  JobStory try_attempt(const Assignment& assignment);
  JobStory cut_off(const LinkEvent& event, std::optional<JobStory> own) const;
  void leave_others();
  void flush();
  JobResult finish(JobStory story);

  // supervisor_attempt.cpp: the ranks
  JobStory run_attempt(const Assignment& assignment);
  void start_all();
  void start(int place);
  pid_t spawn(int local_rank, const ChildDescriptors& descriptors);
  void say_what_was_done();
  void drain();
  void end_descendants();

  NodeJob job_;
  JobInput input_;
  Asking asking_;
  Traces traces_;
  OtherNodes nodes_;
  EventSource lifeline_, signals_;
  std::optional<StackTaker> survivors_;     // the stacks of those that are about to be ended
  std::unique_ptr<MetricsServer> metrics_;  // null: nobody has asked for it
  // Without ranks, before they start or when they have ended, there is no directory of theirs in which a job of several
  // nodes could be asked.
  std::optional<JobDirectory> watching_;
  bool child_changed_ = false;
  bool said_no_pidfd_ = false;
  bool warned_of_stragglers_ = false;
  bool said_too_few_ = false;
};

}  // namespace col::launch
