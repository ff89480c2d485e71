#include "launch/supervise.hpp"

#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include <fmt/format.h>

#include "common/exit_codes.hpp"
#include "core/clock/clock.hpp"
#include "launch/attempt.hpp"
#include "launch/job/assignment.hpp"
#include "launch/job/launch_error.hpp"
#include "launch/processes/descriptors.hpp"
#include "launch/report/look.hpp"
#include "launch/report/metrics_text.hpp"
#include "launch/report/report.hpp"
#include "launch/report/why.hpp"

namespace col::launch {
namespace {

using tools::UniqueFd;
using tools::exit_code::kLauncher;

// After this time, a job whose first rank has ended well reports which ranks it still waits for.
constexpr std::chrono::seconds kStragglerWarning{30};

}  // namespace

Supervisor::Supervisor(const JobParts& parts)
    : parts_(parts),
      open_files_(raise_open_files()),
      host_(host_name()),
      began_(Clock::now()),
      began_at_(core::wall_now()),
      epoll_(make_epoll()),
      null_(::open("/dev/null", O_RDONLY | O_CLOEXEC)),
      output_({.epoll_fd = epoll_.get(),
               .pipe_tag = epoll_tag::kPipe,
               .sink_tag = epoll_tag::kSink,
               .stdin_fd = parts.spec.stdin_fd,
               .stdout_fd = parts.spec.stdout_fd,
               .stderr_fd = parts.spec.stderr_fd,
               .ranks = parts.spec.local_ranks()},
              parts.spec.output) {
  if (!null_) throw LaunchError(kLauncher, "cannot open /dev/null: {}", strerror(errno));
  watch_readable(epoll_.get(), parts_.lifeline, epoll_tag::kLifeline);
  watch_readable(epoll_.get(), parts_.signals.fd(), epoll_tag::kSignals);
}

// Handles what has happened, waiting for it until `latest` at most (no limit of its own when empty).
void Supervisor::step(std::optional<Time> latest) {
  if (const std::optional<Time> due = next_deadline(); due && (!latest || *due < *latest)) latest = due;
  const Duration at_most = more_output_ || child_changed_ ? Duration::zero()
                           : latest                       ? *latest - Clock::now()
                                                          : Deadline::kMaxBudget;
  std::array<epoll_event, 256> room;
  // In the order in which they happened: so the first rank to fail is seen first.
  for (const epoll_event& event : next_events(epoll_.get(), room, at_most)) dispatch(event.data.u64);
  if (child_changed_) reap_adopted();
  do_due(Clock::now());
}

std::optional<Supervisor::Time> Supervisor::next_deadline() const {
  std::optional<Time> first = output_.deadline();
  const auto consider = [&](std::optional<Time> time) {
    if (time && (!first || *time < *first)) first = time;
  };
  if (link_) consider(link_->deadline());
  if (metrics_) consider(metrics_->deadline());
  if (asked_stacks_) consider(asked_stacks_->deadline());
  consider(questions_.deadline());
  if (!attempt_) {
    if (remotes_) consider(remotes_->deadline());
    return first;
  }
  consider(attempt_->ending().deadline());
  consider(attempt_->injector().deadline());
  if (stacks_) consider(stacks_->deadline());
  if (attempt_->ending().is_ending() || attempt_->living() == 0) return first;
  const LifecycleSpec& limits = parts_.spec.lifecycle;
  if (limits.timeout) consider(began_ + *limits.timeout);
  if (parts_.spec.inspect.report_hang && !looks_for_hang_ && node_rank_ == 0) consider(next_hang_look_);
  consider(attempt_->next_look());
  if (const auto ended = attempt_->first_good_end()) {
    if (limits.exit_timeout) consider(*ended + *limits.exit_timeout);
    if (!warned_of_stragglers_) consider(*ended + kStragglerWarning);
  }
  return first;
}

void Supervisor::dispatch(std::uint64_t event) {
  const std::size_t index = event & epoll_tag::kIndexMask;
  switch (event & ~epoll_tag::kIndexMask) {
    case epoll_tag::kLifeline:
      return on_lifeline();
    case epoll_tag::kSignals:
      while (const int signal = parts_.signals.next()) child_changed_ = child_changed_ || signal == SIGCHLD;
      return;
    case epoll_tag::kRank:
      return on_rank_event(static_cast<int>(index));
    case epoll_tag::kPmi:
      return on_pmi(static_cast<int>(index));
    case epoll_tag::kPipe:
      return output_.on_pipe(index);
    case epoll_tag::kSink:
      return output_.on_sink(index);
    case epoll_tag::kInput:
      if (input_) input_->on_event(index);
      return;
    case epoll_tag::kSharedInput:
      if (shared_input_) shared_input_->on_event(index);
      return;
    case epoll_tag::kMetrics:
      return metrics_->on_event(index, Clock::now());
    case epoll_tag::kLink:
      return on_link();
    case epoll_tag::kRemote:
      return remotes_->on_event(index);
    case epoll_tag::kDesk:
      return on_desk(index);
    default:
      return;
  }
}

// ---- signals

void Supervisor::on_lifeline() {
  unsigned char forwarded[64];
  const ssize_t count = ::read(parts_.lifeline, forwarded, sizeof forwarded);
  if (count == 0) {
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, parts_.lifeline, nullptr);
    front_is_gone_ = true;
    output_.drop_unwritten();
    if (attempt_) attempt_->ending().kill(EndCause::launcher_failed, Clock::now());
  }
  for (ssize_t index = 0; index < count; ++index) on_forwarded(forwarded[index]);
}

void Supervisor::on_forwarded(int signal) {
  if (signal == SIGQUIT && only_asks_why(Clock::now())) {
    ask_all({.calls = kReportedCalls}, [this](const JobStory& story) { say_why(story, why(story)); });
  } else if (ends_job(signal)) {
    if (link_) {
      link_->tell_signal(signal);
      if (++own_signals_ <= signal_round_) return;
      signal_round_ = own_signals_;
    }
    on_end_signal(signal);
  } else if (signal == SIGTSTP || signal == SIGCONT) {
    on_stop_signal(signal == SIGTSTP);
  } else {
    if (signal == SIGWINCH) output_.copy_window_size();
    if (attempt_) attempt_->notify_all(signal);
  }
}

void Supervisor::serve_metrics() {
  const InspectSpec& inspect = parts_.spec.inspect;
  if (inspect.metrics_host.empty()) return;
  const Endpoint at{inspect.metrics_host, inspect.metrics_port};
  metrics_ =
      std::make_unique<MetricsServer>(at, epoll_.get(), epoll_tag::kMetrics, [this](MetricsServer::Answer answer) {
        ask_all({}, [this, answer = std::move(answer)](JobStory story) {
          story.job_id = parts_.job_id;
          story.command_line = parts_.spec.command_line;
          answer(metrics_text(story));
        });
      });
  if (!parts_.spec.output.quiet) say("figures of this job: http://{}/metrics", metrics_->endpoint().text());
}

void Supervisor::on_end_signal(int signal) {
  if (!attempt_) {
    if (signals_between_++ == 0) signal_between_ = signal;
    return;
  }
  attempt_->ending().on_signal(signal, Clock::now());
  if (const int due = attempt_->ending().due(Clock::now()); due != 0) attempt_->signal_all(due);
}

void Supervisor::on_stop_signal(bool stopped) {
  if (shared_input_) stopped ? shared_input_->suspend() : shared_input_->resume();
  // A job that is ending goes on: its ranks' time is running out.
  if (stopped && attempt_ && attempt_->ending().is_ending()) return;
  stopped_ = stopped;
  if (!attempt_) return;
  if (input_ && stopped) input_->suspend();
  attempt_->set_stopped(stopped);
  if (input_ && !stopped) input_->resume();
}

// ---- processes

void Supervisor::on_rank_event(int local_rank) {
  if (!attempt_) return;
  const Attempt::Ended ended = attempt_->reap(local_rank, Clock::now());
  if (ended == Attempt::Ended::no) return;
  if (const auto reader = std::ranges::find(readers_, local_rank); reader != readers_.end())
    input_->on_reader_end(static_cast<std::size_t>(reader - readers_.begin()));
  if (ended == Attempt::Ended::failed && link_) tell_failure(local_rank);
}

void Supervisor::on_pmi(int local_rank) {
  if (!attempt_ || attempt_->pmi() == nullptr) return;
  attempt_->pmi()->on_readable(local_rank);
  if (const auto code = attempt_->pmi()->take_abort(local_rank)) attempt_->end_with(local_rank, *code);
  const auto entries = attempt_->pmi()->take_barrier();
  if (!entries) return;
  if (link_)
    link_->tell_exchanged(*entries, restarts_);
  else
    attempt_->pmi()->end_barrier(*entries);
}

// Orphans of the job become our children; those that have ended must not stay behind as zombies.
void Supervisor::reap_adopted() {
  child_changed_ = false;
  siginfo_t info{};
  while (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0) {
    if (const int rank = attempt_ ? attempt_->rank_of(info.si_pid) : -1; rank >= 0) {
      if (attempt_->has_event(rank)) {
        child_changed_ = true;  // it is on the way; then look again
        return;
      }
      on_rank_event(rank);
      info.si_pid = 0;
      continue;
    }
    int wait_status = 0;
    ::waitpid(info.si_pid, &wait_status, 0);
    if (info.si_pid == meeting_) meeting_ = 0;
    if (remotes_) remotes_->on_child_end(info.si_pid, wait_status);
    info.si_pid = 0;
  }
}

// ---- what time brings

void Supervisor::do_due(Time now) {
  more_output_ = output_.work(now);
  for (Input* input : {shared_input_.get(), input_.get()}) {
    if (input != nullptr) more_output_ = input->work() || more_output_;
  }
  if (link_) {
    link_->tick(now);
    on_link();  // silence is no event
  }
  if (metrics_) metrics_->tick(now);
  work_on_asked_stacks(now);
  questions_.tick(now);
  if (!attempt_) return;
  if (output_.is_cut_off()) attempt_->ending().on_output_closed(now);
  for (const Injector::Act& act : attempt_->injector().due(now)) {
    if (act.announced) say("injected {} into rank {}", signal_name(act.signal), act.rank);
    attempt_->signal_group(act.rank - attempt_->assignment().first_rank, act.signal);
  }
  check_limits(now);
  attempt_->look_at_calls(now);
  look_into_survivors(now);
  if (const int signal = attempt_->ending().due(now); signal != 0) attempt_->signal_all(signal);
}

void Supervisor::check_limits(Time now) {
  if (attempt_->ending().is_ending() || attempt_->living() == 0) return;
  const LifecycleSpec& limits = parts_.spec.lifecycle;
  const auto end_because = [&](EndCause cause) {
    attempt_->remember_calls();
    attempt_->ending().on_limit(cause, now);
    if (link_) link_->tell_limit(cause, restarts_);
  };
  if (limits.timeout && now >= began_ + *limits.timeout) return end_because(EndCause::timed_out);
  report_hang(now);
  const auto ended = attempt_->first_good_end();
  if (!ended) return;
  if (limits.exit_timeout && now >= *ended + *limits.exit_timeout) return end_because(EndCause::exit_timed_out);
  if (warned_of_stragglers_ || now < *ended + kStragglerWarning) return;
  warned_of_stragglers_ = true;
  say("a rank ended well {} s ago; still running: {} (--exit-timeout would end them)", kStragglerWarning.count(),
      name_ranks(attempt_->living_ranks()));
}

// Takes the stacks of the ranks that are about to be ended.
void Supervisor::look_into_survivors(Time now) {
  Ending& ending = attempt_->ending();
  if (ending.phase() != Ending::Phase::examining) {
    stacks_.reset();
    return;
  }
  if (stacks_) {
    stacks_->work(now);
  } else {
    examined_ = attempt_->living_pids();
    stacks_ = std::make_unique<StackTaker>(examined_, now + Ending::kExamine);
    watch_readable(epoll_.get(), stacks_->fd(), epoll_tag::kStacks);
  }
  if (!stacks_->finished()) return;
  std::vector<std::optional<Stack>> taken = stacks_->take();
  for (std::size_t index = 0; index < taken.size(); ++index) {
    if (taken[index]) attempt_->keep_stack(examined_[index], std::move(*taken[index]));
  }
  stacks_.reset();
  ending.on_examined(Clock::now());
}

}  // namespace col::launch
