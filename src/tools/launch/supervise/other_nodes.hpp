// The launchers of the job's other nodes: starts them, meets them, and obeys what they say.
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "launch/nodes/endpoint.hpp"
#include "launch/nodes/node_link.hpp"
#include "launch/nodes/remotes.hpp"
#include "launch/supervise/asking.hpp"
#include "launch/supervise/job_input.hpp"
#include "launch/supervise/node_job.hpp"
#include "launch/supervise/traces.hpp"
#include "net/listener.hpp"

namespace col::launch {

class OtherNodes {
 public:
  using Time = NodeJob::Time;

  OtherNodes(NodeJob& job, JobInput& input, Asking& asking, Traces& traces);

  // Starts what is needed for the nodes to meet.
  void begin();
  // Tries the endpoints in turn, until one takes us: then there is a link.
  bool try_to_join();
  // Throws LaunchError if none has taken us for too long.
  void check_patience() const;

  void tick(Time now);
  std::optional<Time> deadline() const;
  void on_child_end(pid_t pid, int wait_status);

  // Ranks are to start, or the job is over; null: there is none.
  const LinkEvent* news() const { return news_ ? &*news_ : nullptr; }
  LinkEvent take_news() { return *std::exchange(news_, std::nullopt); }
  // Ranks are about to be started. What came for them with the news about their start is obeyed once they can be told.
  void before_ranks();
  void obey_early();
  // Processes that no rank of this attempt has left behind.
  std::vector<pid_t> not_of_ranks() const;

  void tell_failure_of(int local_rank);
  // Launchers that could not be started.
  void tell_unreachable();
  std::string describe_lost(const LinkEvent& event, bool had_started) const;
  // The job is over: the others' launchers are given time to end.
  void leave();
  bool serves_meeting() const noexcept { return meeting_ != 0; }
  bool any_launcher_left() const { return remotes_ && remotes_->any_left(); }

 private:
  void serve_meeting(net::Listener listener, const std::string& host);
  void serve_meeting_if_here(const Endpoint& endpoint);
  void join(Connection connection, const Endpoint& endpoint);
  void receive();
  void obey(const LinkEvent& event);

  NodeJob& job_;
  JobInput& input_;
  Asking& asking_;
  Traces& traces_;
  EventSource link_events_;
  std::unique_ptr<Remotes> remotes_;  // null: this node starts no other node
  std::vector<Endpoint> endpoints_;   // of the meeting
  Time latest_{};                     // for one of them to take us
  std::string refused_;               // why the last one did not
  pid_t meeting_ = 0;                 // the process where the nodes meet, if it is on this node
  std::string meeting_place_;         // where this node has joined it
  std::optional<LinkEvent> news_;     // not handled yet
  std::vector<LinkEvent> early_;
  std::vector<pid_t> older_than_ranks_;  // processes of ssh and what it has left
};

}  // namespace col::launch
