#include "launch/supervise/ending.hpp"

#include <algorithm>
#include <csignal>

namespace col::launch {

void Ending::enter(Phase phase, int signal, std::optional<Time> deadline) {
  phase_ = phase;
  pending_ = signal;
  deadline_ = deadline;
}

void Ending::terminate(Time now) {
  enter(Phase::terminating, SIGTERM, now + rules_.grace);
}

void Ending::go_on(Time now) {
  if (settles_) {
    enter(Phase::settling, 0, now + kSettle);
  } else {
    terminate(now);
  }
}

void Ending::examine_or_go_on(bool examine, Time now) {
  if (examine) {
    enter(Phase::examining, 0, now + kExamine);
  } else {
    go_on(now);
  }
}

void Ending::on_examined(Time now) {
  if (phase_ == Phase::examining) go_on(now);
}

void Ending::note(const Failure& failure) {
  // Once ranks have been told to end, how they end says nothing, except a death that we cannot have caused.
  const bool told = std::ranges::any_of(sent_, [](bool sent) { return sent; });
  const bool on_its_own =
      !failure.collateral && (!told || (failure.by_signal > 0 && !sent_[static_cast<std::size_t>(failure.by_signal)]));
  if (culprit_ < 0 || (culprit_is_collateral_ && on_its_own)) {
    culprit_ = failure.rank;
    culprit_is_collateral_ = !on_its_own;
  }
}

void Ending::on_failure(const Failure& failure, Time now) {
  if (is_ending() && cause_ != EndCause::rank_failed) return;
  note(failure);
  if (phase_ != Phase::running || rules_.keep_going) return;
  cause_ = EndCause::rank_failed;
  // A collateral failure comes before its cause was seen: that gets the same time to show up.
  settles_ = failure.others_may_notice || failure.collateral;
  examine_or_go_on(rules_.examine_failures, now);
}

void Ending::on_failure_elsewhere(bool others_may_notice, Time now) {
  if (is_ending()) return;
  cause_ = EndCause::rank_failed;
  settles_ = others_may_notice;
  examine_or_go_on(rules_.examine_failures, now);
}

void Ending::on_cut_off(bool others_may_notice, Time now) {
  if (is_ending()) return;
  cause_ = EndCause::node_lost;
  settles_ = others_may_notice;
  go_on(now);
}

void Ending::on_limit(EndCause cause, Time now) {
  if (is_ending()) return;
  cause_ = cause;
  examine_or_go_on(rules_.examine_time_limits, now);
}

void Ending::on_signal(int signal, Time now) {
  later_signal_ = is_ending();
  switch (phase_) {
    case Phase::running:
      cause_ = EndCause::interrupted;
      signal_ = signal;
      if (signal == SIGINT) {
        enter(Phase::interrupted, signal, now + rules_.grace);
      } else {
        enter(Phase::terminating, signal, now + rules_.term_grace);
      }
      break;
    case Phase::examining:
    case Phase::settling:
    case Phase::interrupted:
      terminate(now);
      break;
    case Phase::terminating:
      // Only a person at the keyboard is that impatient; a supervisor may send TERM twice.
      if (signal == SIGINT) enter(Phase::killing, SIGKILL, now + kKillWait);
      break;
    case Phase::killing:
    case Phase::given_up:
      break;
  }
}

void Ending::on_over(Time now) {
  if (phase_ == Phase::running) terminate(now);
}

void Ending::on_output_closed(Time now) {
  if (is_ending()) return;
  cause_ = EndCause::output_closed;
  terminate(now);
}

void Ending::kill(EndCause cause, Time now) {
  if (!is_ending()) cause_ = cause;
  if (phase_ == Phase::killing || phase_ == Phase::given_up) return;
  enter(Phase::killing, SIGKILL, now + kKillWait);
}

int Ending::due(Time now) {
  if (deadline_ && now >= *deadline_) {
    switch (phase_) {
      case Phase::examining:
        go_on(now);
        break;
      case Phase::settling:
      case Phase::interrupted:
        terminate(now);
        break;
      case Phase::terminating:
        enter(Phase::killing, SIGKILL, now + kKillWait);
        break;
      case Phase::killing:
        enter(Phase::given_up, 0, std::nullopt);
        break;
      case Phase::running:
      case Phase::given_up:
        break;
    }
  }
  const int signal = pending_;
  pending_ = 0;
  if (signal != 0) sent_[static_cast<std::size_t>(signal)] = true;
  return signal;
}

Injector::Injector(const std::vector<Injection>& injections, int first_rank, int count) {
  for (const Injection& injection : injections) {
    if (injection.rank >= first_rank && injection.rank - first_rank < count) planned_.push_back({injection});
  }
}

void Injector::on_started(int rank, Time now) {
  for (Planned& planned : planned_) {
    if (planned.injection.rank == rank) planned.at = now + planned.injection.at;
  }
}

void Injector::on_ended(int rank) {
  for (Planned& planned : planned_) {
    if (planned.injection.rank == rank) planned.at.reset();
  }
}

// Does what is due of one injection and sets the time of what comes next.
void Injector::advance(Planned& planned, std::vector<Act>& acts) {
  const Injection& injection = planned.injection;
  const Time at = *planned.at;
  planned.at.reset();
  if (injection.kind == Injection::Kind::kill) {
    acts.push_back({injection.rank, SIGKILL});
    return;
  }
  planned.stopped = !planned.stopped;
  const bool is_slow = injection.kind == Injection::Kind::slow;
  acts.push_back({injection.rank, planned.stopped ? SIGSTOP : SIGCONT, !is_slow || !planned.began});
  planned.began = true;
  if (injection.kind == Injection::Kind::stop) {
    if (planned.stopped && injection.duration > Milliseconds::zero()) planned.at = at + injection.duration;
    return;
  }
  const auto runs = std::chrono::duration_cast<std::chrono::microseconds>(kPeriod / injection.factor);
  planned.at = at + (planned.stopped ? kPeriod - runs : runs);
}

std::vector<Injector::Act> Injector::due(Time now) {
  std::vector<Act> acts;
  for (Planned& planned : planned_) {
    if (!planned.at || now < *planned.at) continue;
    // A launcher that was late must not make up for it by acts in quick succession.
    if (now - *planned.at > kPeriod) planned.at = now;
    advance(planned, acts);
  }
  return acts;
}

std::optional<Injector::Time> Injector::deadline() const {
  std::optional<Time> first;
  for (const Planned& planned : planned_) {
    if (planned.at && (!first || *planned.at < *first)) first = planned.at;
  }
  return first;
}

}  // namespace col::launch
