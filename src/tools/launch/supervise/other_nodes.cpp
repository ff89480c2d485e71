#include "launch/supervise/other_nodes.hpp"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include <col/store.hpp>

#include "common/exit_codes.hpp"
#include "launch/job/launch_error.hpp"
#include "launch/nodes/meeting.hpp"
#include "launch/processes/processes.hpp"
#include "launch/report/rank_words.hpp"

namespace col::launch {
namespace {

using tools::exit_code::kLauncher;

constexpr std::chrono::milliseconds kConnectTime{2'000};  // for one try
constexpr std::chrono::milliseconds kOwnPortTime{5'000};  // for all, where the port is ours

}  // namespace

OtherNodes::OtherNodes(NodeJob& job, JobInput& input, Asking& asking, Traces& traces)
    : job_(job), input_(input), asking_(asking), traces_(traces), link_events_(job.events, [this](std::size_t) {
        receive();
      }) {}

void OtherNodes::begin() {
  const Rendezvous& meeting = job_.parts.rendezvous;
  endpoints_ = meeting.endpoints;
  latest_ = job_.began + meeting.timeout;
  if (!job_.starts_others()) return;
  net::Listener listener = net::listen_on({""}, 0);
  if (listener.sockets.empty()) throw LaunchError(kLauncher, "cannot listen on any port: {}", strerror(listener.error));
  const int port = listener.port;
  serve_meeting(std::move(listener), {});
  endpoints_ = {{.host = "localhost", .port = port}, {.host = "::1", .port = port}};
  remotes_ = std::make_unique<Remotes>(job_.events, job_.output);
  remotes_->start(job_.parts.spec, meeting, port);
  input_.share(*remotes_);
  latest_ = std::min(latest_, NodeJob::Clock::now() + kOwnPortTime);
}

void OtherNodes::serve_meeting(net::Listener listener, const std::string& host) {
  const Rendezvous& meeting = job_.parts.rendezvous;
  const MeetingSpec spec{.min_nodes = meeting.min_nodes,
                         .max_nodes = meeting.max_nodes,
                         .id = meeting.id,
                         .secret = meeting.secret,
                         .job_id = job_.parts.job_id,
                         .tool = job_.parts.spec.tool,
                         .host = host,
                         .join_timeout = meeting.timeout,
                         .pulse = Pulse(meeting.host_timeout),
                         .max_restarts = job_.parts.spec.lifecycle.max_restarts,
                         .others_may_come = meeting.remotes.empty(),
                         .keep_going = job_.parts.spec.lifecycle.keep_going,
                         .has_epochs = job_.parts.spec.lifecycle.has_epochs(),
                         .exit_policy = job_.parts.spec.lifecycle.exit_policy};
  meeting_ =
      start_meeting(std::move(listener), spec, {job_.parts.lifeline, job_.events.fd(), job_.parts.spec.stdin_fd});
}

// On the host of the endpoint one launcher serves the meeting: the first to get the port. Names may become known only
// while we wait, so this is tried again.
void OtherNodes::serve_meeting_if_here(const Endpoint& endpoint) {
  if (meeting_ != 0 || !job_.parts.rendezvous.may_serve || !is_this_host(endpoint.host)) return;
  const auto addresses = listen_addresses(endpoint.host);
  const bool all = !addresses || addresses->empty();
  net::Listener listener = net::listen_on(all ? std::vector<std::string>{""} : *addresses, endpoint.port);
  if (!listener.sockets.empty()) return serve_meeting(std::move(listener), all ? std::string() : endpoint.host);
  if (listener.error == EADDRINUSE) return;
  throw LaunchError(kLauncher,
                    "cannot listen on port {}, where the nodes of the job meet: {}; choose another "
                    "port in --rdzv-endpoint, on all nodes",
                    endpoint.port, strerror(listener.error));
}

bool OtherNodes::try_to_join() {
  for (const Endpoint& endpoint : endpoints_) {
    serve_meeting_if_here(endpoint);
    Connection connection = connect_to(endpoint, kConnectTime);
    if (connection.socket) {
      join(std::move(connection), endpoint);
      return true;
    }
    refused_ = connection.error;
  }
  return false;
}

void OtherNodes::check_patience() const {
  const Time now = NodeJob::Clock::now();
  if (now < latest_) return;
  throw LaunchError(kLauncher, "{}, for {} s; {}", refused_,
                    std::chrono::duration_cast<std::chrono::seconds>(now - job_.began).count(),
                    remotes_ ? "the nodes meet here, and the loopback interface must be up (ip link set lo up)"
                             : "is --rdzv-endpoint right, does colrun run on that host, and does a firewall let this "
                               "one through?");
}

void OtherNodes::join(Connection connection, const Endpoint& endpoint) {
  const NodeHello hello{.id = job_.parts.rendezvous.id,
                        .secret = job_.parts.rendezvous.secret,
                        .node_rank = job_.parts.rendezvous.node_rank,
                        .host = job_.host,
                        .local_ranks = job_.parts.spec.local_ranks(),
                        .master_port = pick_free_port().port,
                        .wants_stories = job_.parts.rendezvous.reports,
                        .asks_for_clock = job_.parts.spec.inspect.times || !job_.parts.spec.inspect.trace_path.empty()};
  meeting_place_ = endpoint.text();
  job_.link = std::make_unique<NodeLink>(std::move(connection.socket), connection.peer_address, hello,
                                         NodeJob::Clock::now(), Pulse(job_.parts.rendezvous.host_timeout));
  if (!link_events_.add(job_.link->fd(), EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET))
    throw LaunchError(kLauncher, "cannot watch the connection to other nodes: {}", strerror(errno));
}

void OtherNodes::tick(Time now) {
  if (!job_.link) return;
  job_.link->tick(now);
  receive();  // silence is no event
}

std::optional<OtherNodes::Time> OtherNodes::deadline() const {
  return earlier(job_.link ? job_.link->deadline() : std::nullopt,
                 remotes_ && !job_.attempt ? remotes_->deadline() : std::nullopt);
}

void OtherNodes::on_child_end(pid_t pid, int wait_status) {
  if (pid == meeting_) meeting_ = 0;
  if (remotes_) remotes_->on_child_end(pid, wait_status);
}

// An ssh that has gone to the background has left it there by now: all nodes have come.
void OtherNodes::before_ranks() {
  if (remotes_) older_than_ranks_ = descendants_of(::getpid());
}

std::vector<pid_t> OtherNodes::not_of_ranks() const {
  std::vector<pid_t> processes = older_than_ranks_;
  if (meeting_ != 0) processes.push_back(meeting_);
  return processes;
}

void OtherNodes::receive() {
  if (!job_.link) return;
  for (const LinkEvent& event : job_.link->receive(NodeJob::Clock::now())) obey(event);
}

void OtherNodes::obey_early() {
  for (const LinkEvent& event : std::exchange(early_, {})) obey(event);
}

void OtherNodes::obey(const LinkEvent& event) {
  using Kind = LinkEvent::Kind;
  const Time now = NodeJob::Clock::now();
  const bool is_for_ranks = event.kind == Kind::abort || event.kind == Kind::signal || event.kind == Kind::limit;
  if (is_for_ranks && !job_.attempt && news_ && news_->kind == Kind::start) {
    early_.push_back(event);  // it has come together with their start
    return;
  }
  switch (event.kind) {
    case Kind::start:
    case Kind::done:
    case Kind::refused:
      news_ = event;
      return;
    case Kind::lost:
      news_ = event;
      if (!job_.attempt) return;
      job_.attempt->remember_calls();
      job_.attempt->abort({ErrorCode::peer_lost, -1, describe_lost(event, true)});
      job_.attempt->ending().on_cut_off(job_.attempt->others_may_notice(), now);
      break;
    case Kind::signal:
      if (ends_job(event.signal) && job_.life.is_new_round(event.round) && job_.attempt) job_.end_by(event.signal);
      return;
    case Kind::abort:
      if (!job_.attempt) return;
      job_.attempt->remember_calls();
      job_.attempt->abort(event.abort);
      job_.attempt->ending().on_failure_elsewhere(job_.attempt->others_may_notice(), now);
      break;
    case Kind::traced:
      return traces_.add(event);
    case Kind::ask:
      return asking_.on_asked(event);
    case Kind::asked:
      return asking_.questions().on_asked(event.question, event.outcome);
    case Kind::answer:
      return asking_.questions().on_answer(event.question, event.node_rank, event.outcome);
    case Kind::exchanged:
      if (job_.attempt) job_.attempt->end_barrier(event.entries);
      return;
    case Kind::limit:
      if (!job_.attempt) return;
      job_.attempt->remember_calls();
      job_.attempt->ending().on_limit(event.limit, now);
      break;
  }
}

void OtherNodes::tell_failure_of(int local_rank) {
  const RankStatus& status = job_.attempt->status(local_rank);
  const int rank = job_.attempt->global(local_rank);
  job_.link->tell(
      Failed{.restart = job_.attempt->assignment().restart,
             .rank = rank,
             .collateral = status.collateral,
             .what = fmt::format("rank {} on host {} {}", rank, job_.host, describe_wait_status(status.wait_status))});
}

void OtherNodes::tell_unreachable() {
  if (!remotes_) return;
  for (const Unreachable& failure : remotes_->take_failures(NodeJob::Clock::now())) job_.link->tell(failure);
}

std::string OtherNodes::describe_lost(const LinkEvent& event, bool had_started) const {
  if (event.kind == LinkEvent::Kind::refused)
    return fmt::format("the job at {} refuses this node: {}", meeting_place_, event.why);
  if (!had_started)
    return fmt::format(
        "cannot join the job at {}: {}; if no colrun answers there, name a free port by --rdzv-endpoint HOST:PORT, on "
        "all nodes",
        meeting_place_, event.why);
  return fmt::format(
      "lost the connection to the job at {} ({}), so the ranks of host {} were ended: the other host is "
      "dead or frozen, its colrun was killed, or the network between the two is cut; look there first",
      meeting_place_, event.why, job_.host);
}

void OtherNodes::leave() {
  job_.link.reset();
  input_.end_sharing();
  if (remotes_) remotes_->let_go();
}

}  // namespace col::launch
