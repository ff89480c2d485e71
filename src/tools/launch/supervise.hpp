// The life of a job on this node, inside the watcher process: starts the ranks, passes on signals and output, ends the
// ranks in order, and starts them again if a restart is wanted.
#pragma once

#include <sys/resource.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <col/trace.hpp>

#include "common/unique_fd.hpp"
#include "launch/attempt.hpp"
#include "launch/job/job_spec.hpp"
#include "launch/job/launch_error.hpp"
#include "launch/metrics_server.hpp"
#include "launch/nodes/ask_desk.hpp"
#include "launch/nodes/asked_for.hpp"
#include "launch/nodes/endpoint.hpp"
#include "launch/nodes/node_link.hpp"
#include "launch/nodes/questions.hpp"
#include "launch/nodes/remotes.hpp"
#include "launch/nodes/rendezvous.hpp"
#include "launch/output/input.hpp"
#include "launch/output/output.hpp"
#include "launch/place/placement.hpp"
#include "launch/processes/signals.hpp"
#include "launch/report/job_story.hpp"
#include "launch/report/stacks.hpp"
#include "launch/report/why.hpp"

namespace col::launch {

// What a job needs before its first rank.
struct JobParts {
  const JobSpec& spec;
  const std::vector<std::string>& programs;  // paths, as many as spec.programs
  const Placement& placement;
  const std::string& job_id;
  const Rendezvous& rendezvous;
  SignalGate& signals;
  int lifeline;  // non-blocking; one byte for each signal that the front got; it ends when the front is gone
};

class Supervisor {
 public:
  // Throws LaunchError if the limits of this process do not allow this number of ranks, or if something requested is
  // missing.
  explicit Supervisor(const JobParts& parts);

  // Returns when every process of the job on this node is gone, and all output is written. Throws LaunchError if a rank
  // could not be started; ranks that were started are then gone too.
  JobResult run();

 private:
  using Clock = Ending::Clock;
  using Time = Ending::Time;

  // supervise.cpp: what happens while ranks run
  void step(std::optional<Time> latest);
  std::optional<Time> next_deadline() const;
  void dispatch(std::uint64_t event);
  void on_lifeline();
  void on_forwarded(int signal);
  void on_end_signal(int signal);
  void on_stop_signal(bool stopped);
  void on_rank_event(int local_rank);
  void on_pmi(int local_rank);
  void reap_adopted();
  void do_due(Time now);
  void check_limits(Time now);
  void look_into_survivors(Time now);

  // supervise_ranks.cpp: their start, and the end of the job
  void start_all();
  void say_what_was_done();
  void start(int local_rank);
  bool is_last_start() const;
  void give_input_away();
  void replace_input(int by);
  pid_t spawn(int local_rank, const ChildDescriptors& descriptors);
  Assignment assignment_alone() const;
  JobStory run_attempt(const Assignment& assignment);

  void drain();
  void end_descendants();
  void flush();
  JobStory story();
  void serve_metrics();
  JobResult result() const;
  bool may_restart(const JobStory& story) const;
  // A line of the tool's own, with its name before it.
  template <class... Args>
  void say(fmt::format_string<Args...> text, Args&&... args) {
    output_.say(fmt::format("{}: {}", parts_.spec.tool, fmt::format(text, std::forward<Args>(args)...)));
    more_output_ = true;  // once the output has had its turn, a line would wait for the next event
  }
  void say_report(const JobStory& story);
  void tell_lost_output(JobResult& outcome) const;
  void write_json(const JobStory& story);
  bool writes_trace() const;
  void take_traces();
  void forget_traces(int restart);
  void add_trace(const LinkEvent& event);
  void send_traces(Timeline& own);
  void write_trace(const JobStory& story);
  JobResult finish(JobStory story);

  // supervise_asking.cpp: what the ranks are doing, while they run
  void open_desk(const std::string& directory);
  JobStory view_of_job() const;
  JobStory own_view(const AskedFor& what);
  void ask_all(const AskedFor& what, Questions::Done done);
  void on_desk(std::size_t index);
  void on_asked(const LinkEvent& event);
  void take_asked_stacks(const AskedFor& what, std::function<void(JobStory)> then);
  void work_on_asked_stacks(Time now);
  void tell_stacks(const std::vector<std::optional<Stack>>& stacks);
  int ranks_of_job() const;
  void forget_askers();
  bool only_asks_why(Time now);
  void say_why(const JobStory& story, const Why& found);
  void report_hang(Time now);
  void on_hang_view(const JobStory& story);

  // supervise_nodes.cpp: the communication with other nodes
  void meet_nodes();
  void share_input();
  void serve_meeting(net::Listener listener, const std::string& host);
  void serve_meeting_if_here(const Endpoint& endpoint);
  void connect(const std::vector<Endpoint>& endpoints);
  void join_meeting(Connection connection, const Endpoint& endpoint);
  void on_link();
  void on_link_event(const LinkEvent& event);
  void tell_failure(int local_rank);
  LinkEvent next_news(const JobStory* ended);
  JobResult run_with_others();
  std::string describe_lost(const LinkEvent& event, bool had_started) const;
  void leave_others();
  JobStory failed_story(const Assignment& assignment, const LaunchError& error) const;

  JobParts parts_;
  rlimit open_files_;  // the limit with which the launcher was started
  const std::string host_;
  const Time began_;
  const std::chrono::system_clock::time_point began_at_;
  tools::UniqueFd epoll_;
  tools::UniqueFd null_;
  Output output_;
  std::unique_ptr<Input> input_;         // null: no rank reads, or one rank has the descriptor itself
  std::vector<int> readers_;             // local ranks in the order in which input_ knows them
  std::unique_ptr<NodeLink> link_;       // null: this is the only node
  std::unique_ptr<Remotes> remotes_;     // null: this node starts no other node
  std::unique_ptr<Input> shared_input_;  // shared between nodes; null: no rank of another node reads our input
  std::unique_ptr<Attempt> attempt_;
  std::unique_ptr<StackTaker> stacks_;        // while they are taken
  std::vector<pid_t> examined_;               // the processes whose stacks are taken
  std::unique_ptr<AskDesk> desk_;             // null: this is the only node, or it has no ranks now
  Questions questions_;                       // to the other nodes
  std::unique_ptr<StackTaker> asked_stacks_;  // of ranks that go on
  std::vector<pid_t> asked_pids_;             // of these
  std::vector<std::function<void(const std::vector<std::optional<Stack>>&)>> stack_askers_;  // to be told then
  std::optional<LinkEvent> news_;        // ranks start, or the job is over; not handled yet
  std::vector<LinkEvent> early_;         // for ranks that are about to be started
  pid_t meeting_ = 0;                    // the process where the nodes meet, if it is on this node
  std::string meeting_place_;            // where this node has joined it
  std::vector<pid_t> older_than_ranks_;  // processes of ssh and what it has left; no rank of this attempt has left them
  std::size_t processes_left_ = 0;
  int restarts_ = 0;
  int node_rank_ = 0;
  int signal_between_ = 0;   // the first that came while there were no ranks
  int signals_between_ = 0;  // how many
  int own_signals_ = 0;      // how many this launcher got that end the job
  int signal_round_ = 0;     // the largest number of any node: one ^C may reach all of them
  bool more_output_ = false;
  bool child_changed_ = false;
  bool said_no_pidfd_ = false;
  bool front_is_gone_ = false;
  bool stopped_ = false;         // the ranks, by ^Z
  bool input_is_taken_ = false;  // by a rank of the first attempt
  bool warned_of_stragglers_ = false;
  Time next_hang_look_{};                   // for --report-hang
  bool looks_for_hang_ = false;             // the other nodes have been asked
  std::unique_ptr<MetricsServer> metrics_;  // null: nobody has asked for it
  Timeline timeline_;                       // for --trace: what the ranks have kept, of the last start
  int traced_restart_ = 0;                  // which start that is
  std::optional<Time> asked_why_;           // the last SIGQUIT that did not end the job
};

}  // namespace col::launch
