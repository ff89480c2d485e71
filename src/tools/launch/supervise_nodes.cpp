// What the other nodes of a job have to do with the ranks of this one.
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <col/store.hpp>
#include <col/trace.hpp>

#include "common/exit_codes.hpp"
#include "launch/attempt.hpp"
#include "launch/job/launch_error.hpp"
#include "launch/nodes/agent_job.hpp"
#include "launch/nodes/meeting.hpp"
#include "launch/processes/descriptors.hpp"
#include "launch/processes/job_directory.hpp"
#include "launch/report/report.hpp"
#include "launch/supervise.hpp"

namespace col::launch {
namespace {

using tools::exit_code::kLauncher;

constexpr std::chrono::milliseconds kConnectTime{2'000};  // for one try
constexpr std::chrono::milliseconds kConnectPause{100};   // between two
constexpr std::chrono::milliseconds kOwnPortTime{5'000};  // for all, where the port is ours
constexpr std::chrono::milliseconds kFarewell{3'000};     // for other nodes to hear that the job is over
constexpr std::chrono::milliseconds kLastOutput{30'000};  // for what their ranks have printed to come

constexpr std::string_view kDigits = "0123456789abcdef";

std::string to_hexadecimal(std::string_view bytes) {
  std::string digits;
  digits.reserve(2 * bytes.size());
  for (const char letter : bytes) {
    const auto byte = static_cast<unsigned char>(letter);
    digits += kDigits[byte >> 4];
    digits += kDigits[byte & 15];
  }
  return digits;
}

std::optional<std::string> from_hexadecimal(std::string_view digits) {
  std::string bytes;
  bytes.reserve(digits.size() / 2);
  for (std::size_t i = 0; i + 1 < digits.size(); i += 2) {
    const std::size_t high = kDigits.find(digits[i]), low = kDigits.find(digits[i + 1]);
    if (high == kDigits.npos || low == kDigits.npos) return std::nullopt;
    bytes += static_cast<char>(high << 4 | low);
  }
  return digits.size() % 2 == 0 ? std::optional(std::move(bytes)) : std::nullopt;
}

}  // namespace

// Starts what is needed for the nodes to meet, and joins them.
void Supervisor::meet_nodes() {
  const Rendezvous& meeting = parts_.rendezvous;
  if (meeting.alone) return;
  std::vector<Endpoint> endpoints = meeting.endpoints;
  if (!meeting.remotes.empty()) {
    net::Listener listener = net::listen_on({""}, 0);
    if (listener.sockets.empty())
      throw LaunchError(kLauncher, "cannot listen on any port: {}", strerror(listener.error));
    const int port = listener.port;
    serve_meeting(std::move(listener), {});
    endpoints = {{.host = "localhost", .port = port}, {.host = "::1", .port = port}};
    remotes_ = std::make_unique<Remotes>(epoll_.get(), epoll_tag::kRemote, output_);
    remotes_->start(parts_.spec, meeting, port);
    share_input();
  }
  connect(endpoints);
}

// Ranks of other hosts read, too: then each host has a pipe with a copy of our input, and so has this one, in the place
// of what was given.
void Supervisor::share_input() {
  const Rendezvous& meeting = parts_.rendezvous;
  for (std::size_t host = 0; host < meeting.remotes.size(); ++host) {
    if (!reads_input(parts_.spec, meeting, meeting.remotes[host])) continue;
    if (!shared_input_)
      shared_input_ = std::make_unique<Input>(epoll_.get(), epoll_tag::kSharedInput, parts_.spec.stdin_fd);
    remotes_->give_input(host, shared_input_->add_pipe());
  }
  if (!shared_input_) return;
  tools::UniqueFd own;
  if (reads_input_here(parts_.spec, meeting)) own = shared_input_->add_pipe();
  replace_input(own ? own.get() : null_.get());
  shared_input_->start();
}

void Supervisor::serve_meeting(net::Listener listener, const std::string& host) {
  const Rendezvous& meeting = parts_.rendezvous;
  const MeetingSpec spec{.min_nodes = meeting.min_nodes,
                         .max_nodes = meeting.max_nodes,
                         .id = meeting.id,
                         .secret = meeting.secret,
                         .job_id = parts_.job_id,
                         .tool = parts_.spec.tool,
                         .host = host,
                         .join_timeout = meeting.timeout,
                         .pulse = Pulse(meeting.host_timeout),
                         .max_restarts = parts_.spec.lifecycle.max_restarts,
                         .others_may_come = meeting.remotes.empty(),
                         .keep_going = parts_.spec.lifecycle.keep_going,
                         .exit_policy = parts_.spec.lifecycle.exit_policy};
  meeting_ = start_meeting(std::move(listener), spec, {parts_.lifeline, epoll_.get(), parts_.spec.stdin_fd});
}

// On the host of the endpoint one launcher serves the meeting: the first to get the port. Names may become known only
// while we wait, so this is tried again.
void Supervisor::serve_meeting_if_here(const Endpoint& endpoint) {
  if (meeting_ != 0 || !parts_.rendezvous.may_serve || !is_this_host(endpoint.host)) return;
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

// Tries the endpoints in turn until one takes us.
void Supervisor::connect(const std::vector<Endpoint>& endpoints) {
  const bool is_own = remotes_ != nullptr;
  Time latest = began_ + parts_.rendezvous.timeout;
  if (is_own) latest = std::min(latest, Clock::now() + kOwnPortTime);
  std::string error;
  for (;;) {
    for (const Endpoint& endpoint : endpoints) {
      serve_meeting_if_here(endpoint);
      Connection connection = connect_to(endpoint, kConnectTime);
      if (!connection.socket) {
        error = connection.error;
        continue;
      }
      return join_meeting(std::move(connection), endpoint);
    }
    for (const Time next = Clock::now() + kConnectPause; Clock::now() < next;) step(next);
    if (front_is_gone_ || signal_between_ != 0) return;
    if (Clock::now() >= latest) {
      const auto waited = std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - began_).count();
      throw LaunchError(kLauncher, "{}, for {} s; {}", error, waited,
                        is_own ? "the nodes meet here, and the loopback interface must be up (ip link set lo up)"
                               : "is colrun running on the host of --rdzv-endpoint, and does a firewall let this one "
                                 "through?");
    }
  }
}

void Supervisor::join_meeting(Connection connection, const Endpoint& endpoint) {
  const NodeHello hello{.id = parts_.rendezvous.id,
                        .secret = parts_.rendezvous.secret,
                        .node_rank = parts_.rendezvous.node_rank,
                        .host = host_,
                        .local_ranks = parts_.spec.local_ranks(),
                        .master_port = pick_free_port().port,
                        .wants_stories = parts_.rendezvous.reports,
                        .asks_for_clock = parts_.spec.inspect.times || !parts_.spec.inspect.trace_path.empty()};
  meeting_place_ = endpoint.text();
  link_ = std::make_unique<NodeLink>(std::move(connection.socket), connection.peer_address, hello, Clock::now(),
                                     Pulse(parts_.rendezvous.host_timeout));
  if (!watch(epoll_.get(), link_->fd(), EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, epoll_tag::kLink))
    throw LaunchError(kLauncher, "cannot watch the connection to other nodes: {}", strerror(errno));
}

void Supervisor::on_link() {
  if (!link_) return;
  for (const LinkEvent& event : link_->receive(Clock::now())) on_link_event(event);
}

void Supervisor::on_link_event(const LinkEvent& event) {
  using Kind = LinkEvent::Kind;
  const Time now = Clock::now();
  const bool is_for_ranks = event.kind == Kind::abort || event.kind == Kind::signal || event.kind == Kind::limit;
  if (is_for_ranks && !attempt_ && news_ && news_->kind == Kind::start) {
    early_.push_back(event);  // it has come together with their start
    return;
  }
  switch (event.kind) {
    case LinkEvent::Kind::start:
    case LinkEvent::Kind::done:
    case LinkEvent::Kind::refused:
      news_ = event;
      return;
    case LinkEvent::Kind::lost:
      news_ = event;
      if (!attempt_) return;
      attempt_->remember_calls();
      attempt_->abort({ErrorCode::peer_lost, -1, describe_lost(event, true)});
      attempt_->ending().on_cut_off(attempt_->others_may_notice(), now);
      break;
    case LinkEvent::Kind::signal:
      if (!ends_job(event.signal) || event.round <= signal_round_) return;
      signal_round_ = event.round;
      if (attempt_) on_end_signal(event.signal);
      return;
    case LinkEvent::Kind::abort:
      if (!attempt_) return;
      attempt_->remember_calls();
      attempt_->abort(event.abort);
      attempt_->ending().on_failure_elsewhere(attempt_->others_may_notice(), now);
      break;
    case LinkEvent::Kind::traced:
      return add_trace(event);
    case LinkEvent::Kind::ask:
      return on_asked(event);
    case LinkEvent::Kind::asked:
      return questions_.on_asked(event.question, event.outcome);
    case LinkEvent::Kind::answer:
      return questions_.on_answer(event.question, event.node_rank, event.outcome);
    case LinkEvent::Kind::exchanged:
      if (attempt_ && attempt_->pmi() != nullptr) attempt_->pmi()->end_barrier(event.entries);
      return;
    case LinkEvent::Kind::limit:
      if (!attempt_) return;
      attempt_->remember_calls();
      attempt_->ending().on_limit(event.limit, now);
      break;
  }
}

// Of a start that has been followed by another one, nothing is wanted.
void Supervisor::forget_traces(int restart) {
  if (restart <= traced_restart_) return;
  timeline_ = Timeline();
  traced_restart_ = restart;
}

void Supervisor::add_trace(const LinkEvent& event) {
  forget_traces(event.restart);
  const auto part = from_hexadecimal(event.part);
  if (event.restart < traced_restart_ || !part) return;
  try {
    timeline_.add_packed(*part);
  } catch (const Error& error) {
    say("another host's part of the trace: {}", error.message());
  }
  link_->tick(Clock::now());  // there may be many, and each takes its time
}

// To the node that writes it, by the clock of the meeting.
void Supervisor::send_traces(Timeline& own) {
  if (const auto clock = link_->clock()) own.shift(*clock);
  if (writes_trace()) return;
  // What waits to be sent has a limit, and a host that says nothing for long is lost.
  constexpr std::size_t kPartBytes = 4 * 1024 * 1024, kMostBytes = 96 * 1024 * 1024;
  std::size_t sent = 0;
  for (const std::string& part : own.pack(kPartBytes)) {
    if (sent += 2 * part.size(); sent > kMostBytes) {
      say("this host's part of the trace is too large to be sent whole; take a smaller --trace-limit");
      return;
    }
    link_->tell_trace(to_hexadecimal(part), traced_restart_);
    link_->tick(Clock::now());
  }
}

void Supervisor::tell_failure(int local_rank) {
  const RankStatus& status = attempt_->status(local_rank);
  link_->tell_failure(attempt_->assignment().restart, attempt_->global(local_rank), status.collateral,
                      fmt::format("rank {} on host {} {}", attempt_->global(local_rank), host_,
                                  describe_wait_status(status.wait_status)));
}

// Waits for the meeting to say what comes next.
LinkEvent Supervisor::next_news(const JobStory* ended) {
  const std::optional<Milliseconds> exit_timeout = parts_.spec.lifecycle.exit_timeout;
  std::optional<Time> limit;
  if (ended != nullptr && ended->result.cause == EndCause::none && exit_timeout) limit = Clock::now() + *exit_timeout;
  while (!news_ && link_ && !front_is_gone_) {
    step(limit);
    if (remotes_) {
      for (const Remotes::Failure& failure : remotes_->take_failures(Clock::now()))
        link_->tell_unreachable(failure.what, failure.exit_code, failure.unless_came);
    }
    if (limit && Clock::now() >= *limit) {
      link_->tell_limit(EndCause::exit_timed_out, restarts_);
      limit.reset();
    }
    // Reports the first one. A user who sends more does not want to wait for the others.
    if (signals_between_ > (remotes_ && remotes_->any_left() ? 2 : 1)) break;
  }
  if (news_) return *std::exchange(news_, std::nullopt);
  LinkEvent nothing;
  nothing.kind = LinkEvent::Kind::done;
  nothing.outcome.result.signal = signal_between_;
  nothing.outcome.result.cause = signal_between_ != 0 ? EndCause::interrupted : EndCause::launcher_failed;
  nothing.outcome.result.exit_code = signal_between_ != 0 ? tools::exit_code::kSignalBase + signal_between_ : kLauncher;
  return nothing;
}

std::string Supervisor::describe_lost(const LinkEvent& event, bool had_started) const {
  if (event.kind == LinkEvent::Kind::refused)
    return fmt::format("the job at {} refuses this node: {}", meeting_place_, event.why);
  if (!had_started)
    return fmt::format("cannot join the job at {}: {}; is it a colrun that answers there?", meeting_place_, event.why);
  return fmt::format(
      "lost the connection to the job at {} ({}), so the ranks of host {} were ended: the other host is "
      "dead or frozen, its colrun was killed, or the network between the two is cut; look there first",
      meeting_place_, event.why, host_);
}

JobResult Supervisor::run_with_others() {
  std::optional<JobStory> own;  // of this node's ranks, when they ran last
  // Without ranks, before they start or when they have ended, there is no directory of theirs in which it could be
  // asked.
  std::optional<JobDirectory> watching;
  const auto watch_only = [&] {
    try {
      watching.emplace(parts_.job_id);
      watching->create();
      open_desk(watching->path());
    } catch (const LaunchError& error) {  // the job does not need it
      say("coljob cannot ask here: {}", error.what());
      watching.reset();
    }
  };
  const auto end_watching = [&] {
    if (!watching) return;
    forget_askers();
    watching->remove();
    watching.reset();
  };
  if (parts_.spec.local_ranks() == 0) watch_only();
  for (;;) {
    LinkEvent event = next_news(own ? &*own : nullptr);
    if (event.kind == LinkEvent::Kind::start) {
      if (event.assignment.restart > 0 && parts_.rendezvous.reports) {
        say("{}; starting again with {} nodes, {} ranks", event.why, event.assignment.nodes,
            event.assignment.world_size);
      }
      restarts_ = event.assignment.restart;
      end_watching();
      try {
        own = run_attempt(event.assignment);
      } catch (const LaunchError& error) {
        own = failed_story(event.assignment, error);
      }
      // A launcher that was killed is a node that is lost, to the others: it has no word of its own in how the job
      // ends.
      if (front_is_gone_) return own->result;
      link_->tell_end(*own, event.assignment.restart);
      if (own->result.cause != EndCause::launcher_failed) watch_only();
      continue;
    }
    JobStory outcome = std::move(event.outcome);
    if (event.kind != LinkEvent::Kind::done) {
      outcome.result.exit_code = kLauncher;
      outcome.result.cause = EndCause::node_lost;
      outcome.result.error = describe_lost(event, own.has_value());
      if (own) outcome.ranks = std::move(own->ranks);
      // Told to end, and then cut off: the signal is why.
      if (const int signal = own && own->result.signal != 0 ? own->result.signal : signal_between_; signal != 0)
        outcome.result = {.exit_code = tools::exit_code::kSignalBase + signal,
                          .signal = signal,
                          .cause = EndCause::interrupted,
                          .error = outcome.result.error};
    }
    outcome.tool = parts_.spec.tool;
    outcome.command_line = parts_.spec.command_line;
    leave_others();
    end_watching();
    // Said by the node from which this one was started.
    if (!parts_.rendezvous.reports && event.kind == LinkEvent::Kind::done) return outcome.result;
    return finish(std::move(outcome));
  }
}

// The job is over: the others' launchers are given time to end, and to send what their ranks have printed.
void Supervisor::leave_others() {
  link_.reset();
  shared_input_.reset();
  if (remotes_) remotes_->let_go();
  const Time farewell = Clock::now() + kFarewell;
  while (!front_is_gone_ && Clock::now() < farewell && meeting_ != 0) step(farewell);
  Time latest = Clock::now() + kLastOutput;
  const auto is_coming = [&] { return (remotes_ && remotes_->any_left()) || !output_.all_ended(); };
  while (!front_is_gone_ && signals_between_ == 0 && Clock::now() < latest && is_coming()) {
    step(latest);
    // Our own reader is slow.
    if (!output_.all_written()) latest = Clock::now() + kLastOutput;
  }
  output_.give_up_pipes(Clock::now());
}

JobStory Supervisor::failed_story(const Assignment& assignment, const LaunchError& error) const {
  JobStory story;
  story.tool = parts_.spec.tool;
  story.job_id = assignment.job_id;
  story.started_at = began_at_;
  story.nodes = assignment.nodes;
  story.result.cause = EndCause::launcher_failed;
  story.result.exit_code = error.exit_code();
  story.result.error = error.what();
  return story;
}

}  // namespace col::launch
