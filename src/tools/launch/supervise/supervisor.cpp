#include "launch/supervise/supervisor.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "common/text.hpp"
#include "launch/job/launch_error.hpp"
#include "launch/report/rank_words.hpp"

namespace col::launch {
namespace {

// After this time, a job whose first rank has ended well reports which ranks it still waits for.
constexpr std::chrono::seconds kStragglerWarning{30};

}  // namespace

Supervisor::Supervisor(const JobParts& parts)
    : job_(parts),
      input_(job_),
      asking_(job_),
      traces_(job_),
      nodes_(job_, input_, asking_, traces_),
      lifeline_(job_.events, [this](std::size_t) { on_lifeline(); }),
      signals_(job_.events, [this](std::size_t) {
        while (const int signal = job_.parts.signals.next()) child_changed_ = child_changed_ || signal == SIGCHLD;
      }) {
  lifeline_.add_readable(parts.lifeline);
  signals_.add_readable(parts.signals.fd());
}

// Handles what has happened, waiting for it until `latest` at most (no limit of its own when empty).
void Supervisor::step(std::optional<Time> latest) {
  latest = earlier(latest, next_deadline());
  job_.events.serve(job_.has_more || child_changed_ ? Duration::zero()
                    : latest                        ? *latest - Clock::now()
                                                    : Deadline::kMaxBudget);
  if (child_changed_) reap_adopted();
  do_due(Clock::now());
}

void Supervisor::wait_in(Stage stage) {
  for (job_.life.enter(stage, Clock::now()); job_.life.lasts(facts(), Clock::now());) step(job_.life.deadline());
}

JobLife::Facts Supervisor::facts() const {
  JobLife::Facts facts{.no_news = nodes_.news() == nullptr && job_.link != nullptr,
                       .others_run = nodes_.any_launcher_left(),
                       .serves = nodes_.serves_meeting()};
  const bool with_others = job_.life.stage() == Stage::collecting;
  facts.pipes_open = with_others ? !job_.output.all_ended() : !job_.output.ranks_ended();
  facts.unwritten = !job_.output.all_written();
  if (!job_.attempt) return facts;
  const Ending& ending = job_.attempt->ending();
  facts.ranks_live = job_.attempt->living() > 0 && ending.phase() != Ending::Phase::given_up;
  facts.ranks_end = ending.is_ending();
  facts.interrupted = ending.cause() == EndCause::interrupted;
  facts.signalled = ending.signalled_after();
  return facts;
}

std::optional<Supervisor::Time> Supervisor::next_deadline() const {
  std::optional<Time> first = earlier(job_.output.deadline(), earlier(nodes_.deadline(), asking_.deadline()));
  if (metrics_) first = earlier(first, metrics_->deadline());
  if (!job_.attempt) return first;
  Attempt& attempt = *job_.attempt;
  first = earlier(first, earlier(attempt.ending().deadline(), attempt.injector().deadline()));
  first = earlier(first, survivors_ ? survivors_->deadline() : std::nullopt);
  if (job_.life.stage() == Stage::running) first = earlier(first, attempt.places().deadline());
  if (attempt.ending().is_ending() || attempt.living() == 0) return first;
  const LifecycleSpec& limits = job_.parts.spec.lifecycle;
  if (limits.timeout) first = earlier(first, job_.began + *limits.timeout);
  first = earlier(first, earlier(asking_.next_hang_look(), attempt.next_look()));
  if (const auto ended = attempt.first_good_end()) {
    if (limits.exit_timeout) first = earlier(first, *ended + *limits.exit_timeout);
    if (!warned_of_stragglers_) first = earlier(first, *ended + kStragglerWarning);
  }
  return first;
}

// ---- signals

void Supervisor::on_lifeline() {
  unsigned char forwarded[64];
  const ssize_t count = ::read(job_.parts.lifeline, forwarded, sizeof forwarded);
  if (count == 0) {
    lifeline_.remove(job_.parts.lifeline);
    job_.life.on_front_gone();
    job_.output.drop_unwritten();
    if (job_.attempt) job_.attempt->ending().kill(EndCause::launcher_failed, Clock::now());
  }
  for (ssize_t index = 0; index < count; ++index) on_forwarded(forwarded[index]);
}

void Supervisor::on_forwarded(int signal) {
  if (signal == SIGQUIT && asking_.only_asks_why(Clock::now())) {
    asking_.say_why();
  } else if (ends_job(signal)) {
    if (job_.link) job_.link->tell(SignalCame{.signal = signal});
    if (!job_.link || job_.life.is_new_round()) job_.end_by(signal);
  } else if (signal == SIGTSTP || signal == SIGCONT) {
    on_stop_signal(signal == SIGTSTP);
  } else {
    if (signal == SIGWINCH) job_.output.copy_window_size();
    if (job_.attempt) job_.attempt->notify_all(signal);
  }
}

void Supervisor::on_stop_signal(bool stopped) {
  input_.set_shared_stopped(stopped);
  // A job that is ending goes on: its ranks' time is running out.
  if (stopped && job_.attempt && job_.attempt->ending().is_ending()) return;
  job_.life.set_stopped(stopped);
  if (!job_.attempt) return;
  if (stopped) input_.suspend();
  job_.attempt->set_stopped(stopped);
  if (!stopped) input_.resume();
}

// ---- processes

void Supervisor::on_rank_end(int local_rank, bool failed) {
  input_.on_rank_end(local_rank);
  if (failed && job_.link) nodes_.tell_failure_of(local_rank);
  if (job_.parts.spec.lifecycle.has_epochs()) say_how_it_goes_on(local_rank);
}

// In a job with epochs, one that is lost is no reason to end: nobody would hear of it.
void Supervisor::say_how_it_goes_on(int place) {
  Attempt& attempt = *job_.attempt;
  const Places& places = attempt.places();
  const RankStatus& status = attempt.status(place);
  const LifecycleSpec& life = job_.parts.spec.lifecycle;
  if (places.of(place) != Places::Standing::lost || status.told_to_end || job_.parts.spec.output.quiet) return;
  if (attempt.ending().is_ending() && (!places.are_too_few() || std::exchange(said_too_few_, true))) return;
  const int number = attempt.global(place);
  const auto how = [&] { return fmt::format("{} (pid {}) {}", number, status.pid, describe_status(status)); };
  if (places.will_start(place)) {
    job_.say("rank {}; another process is started in its place ({} of {} restarts)", how(), places.restarts(place) + 1,
             life.max_restarts);
  } else if (places.are_too_few()) {
    job_.say("rank {}; {} of {} ranks are left, and --elastic {}:{} needs {}: the job ends", how(), places.left(),
             attempt.local_ranks(), life.min_ranks, life.max_ranks, life.min_ranks);
  } else if (attempt.has_slept(place)) {
    job_.say("spare {} before the others had taken it in; see whether it comes to col::init() as the ranks do", how());
  } else if (!status.collateral) {  // else it has ended because of another one, and calls no renew()
    const auto spares = static_cast<std::size_t>(places.count(Places::Standing::asleep));
    job_.say("rank {}; {}", how(),
             spares > 0 ? tools::counted(spares, "spare") + " can take its place, once the others call renew()"
                        : "no spare is left to take its place");
  }
}

void Supervisor::on_all_in_barrier(const PmiServer::Entries& put) {
  if (job_.link)
    job_.link->tell(Exchanged{.restart = job_.restarts, .entries = put});
  else
    job_.attempt->end_barrier(put);
}

// Orphans of the job become our children; those that have ended must not stay behind as zombies.
void Supervisor::reap_adopted() {
  child_changed_ = false;
  siginfo_t info{};
  while (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0) {
    const pid_t pid = std::exchange(info.si_pid, 0);
    if (const int rank = job_.attempt ? job_.attempt->rank_of(pid) : -1; rank >= 0) {
      if (job_.attempt->has_event(rank)) {
        child_changed_ = true;  // it is on the way; then look again
        return;
      }
      job_.attempt->reap(rank);
      continue;
    }
    int wait_status = 0;
    ::waitpid(pid, &wait_status, 0);
    nodes_.on_child_end(pid, wait_status);
  }
}

// ---- what time brings

void Supervisor::do_due(Time now) {
  job_.has_more = job_.output.work(now);
  if (input_.work()) job_.has_more = true;
  nodes_.tick(now);
  if (metrics_) metrics_->tick(now);
  asking_.tick(now);
  if (!job_.attempt) return;
  Attempt& attempt = *job_.attempt;
  if (job_.output.is_cut_off()) attempt.ending().on_output_closed(now);
  for (const Injector::Act& act : attempt.injector().due(now)) {
    if (act.announced) job_.say("injected {} into rank {}", signal_name(act.signal), act.rank);
    attempt.signal_group(act.rank - attempt.assignment().first_rank, act.signal);
  }
  mind_places(now);
  check_limits(now);
  attempt.look_at_calls(now);
  look_into_survivors(now);
  if (const int signal = attempt.ending().due(now); signal != 0) attempt.signal_all(signal);
}

void Supervisor::mind_places(Time now) {
  if (job_.life.stage() != Stage::running) return;
  Attempt& attempt = *job_.attempt;
  if (attempt.end_sleepers(now) && attempt.never_renewed() && !job_.parts.spec.output.quiet)
    job_.say(
        "nobody was taken in for those that were lost: no rank has called renew(); this option needs a program that "
        "does (docs/clusters.md)");
  for (const int place : attempt.end_left_out(now)) {
    job_.say("rank {} (pid {}) was left out by the others, and has neither noticed nor ended since; killed it",
             attempt.global(place), attempt.status(place).pid);
  }
  for (const int place : attempt.due_starts(now)) {
    try {
      start(place);
    } catch (const LaunchError& error) {
      job_.say("{}; the others go on", error.what());
      attempt.give_up_start(place, now);
    }
  }
}

void Supervisor::check_limits(Time now) {
  Attempt& attempt = *job_.attempt;
  if (attempt.ending().is_ending() || attempt.living() == 0) return;
  const LifecycleSpec& limits = job_.parts.spec.lifecycle;
  const auto end_because = [&](EndCause cause) {
    attempt.remember_calls();
    attempt.ending().on_limit(cause, now);
    if (job_.link) job_.link->tell(limit_passed(cause, job_.restarts));
  };
  if (limits.timeout && now >= job_.began + *limits.timeout) return end_because(EndCause::timed_out);
  asking_.report_hang(now);
  const auto ended = attempt.first_good_end();
  if (!ended) return;
  if (limits.exit_timeout && now >= *ended + *limits.exit_timeout) return end_because(EndCause::exit_timed_out);
  if (warned_of_stragglers_ || now < *ended + kStragglerWarning) return;
  warned_of_stragglers_ = true;
  job_.say("a rank ended well {} s ago; still running: {} (--exit-timeout would end them)", kStragglerWarning.count(),
           name_ranks(attempt.living_ranks()));
}

// Takes the stacks of the ranks that are about to be ended.
void Supervisor::look_into_survivors(Time now) {
  Ending& ending = job_.attempt->ending();
  if (ending.phase() != Ending::Phase::examining) return survivors_.reset();
  if (!survivors_) survivors_.emplace(job_.events, job_.attempt->living_pids(), now + Ending::kExamine);
  survivors_->work(now);
  if (!survivors_->finished()) return;
  for (auto& [pid, stack] : survivors_->take_by_pid()) job_.attempt->keep_stack(pid, std::move(stack));
  survivors_.reset();
  ending.on_examined(Clock::now());
}

}  // namespace col::launch
