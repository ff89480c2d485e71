#include "launch/ending.hpp"

#include <algorithm>
#include <csignal>

namespace col::launch {

void Ending::enter(Phase phase, int signal, std::optional<Time> deadline) {
  phase_ = phase;
  pending_ = signal;
  deadline_ = deadline;
}

void Ending::terminate(Time now) {
  enter(Phase::terminating, SIGTERM, now + kGrace);
}

void Ending::on_failure(const Failure& failure, Time now) {
  if (why_ != Why::not_ending && why_ != Why::rank_failed) return;
  // Once ranks have been told to end, how they end says nothing, except a death that we cannot have caused.
  const bool told = std::any_of(sent_.begin(), sent_.end(), [](bool sent) { return sent; });
  const bool on_its_own =
      !failure.collateral && (!told || (failure.by_signal > 0 && !sent_[static_cast<std::size_t>(failure.by_signal)]));
  if (culprit_ < 0 || (culprit_is_collateral_ && on_its_own)) {
    culprit_ = failure.rank;
    culprit_is_collateral_ = !on_its_own;
  }
  if (phase_ != Phase::running) return;
  why_ = Why::rank_failed;
  // A collateral failure comes before its cause was seen: that gets the same time to show up.
  if (failure.others_may_notice || failure.collateral) {
    enter(Phase::settling, 0, now + kSettle);
  } else {
    terminate(now);
  }
}

void Ending::on_signal(int signal, Time now) {
  later_signal_ = why_ != Why::not_ending;
  switch (phase_) {
    case Phase::running:
      why_ = Why::interrupted;
      signal_ = signal;
      enter(signal == SIGINT ? Phase::interrupted : Phase::terminating, signal, now + kGrace);
      break;
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

void Ending::on_output_closed(Time now) {
  if (why_ != Why::not_ending) return;
  why_ = Why::output_closed;
  terminate(now);
}

void Ending::kill(Why why, Time now) {
  if (why_ == Why::not_ending) why_ = why;
  if (phase_ == Phase::killing || phase_ == Phase::given_up) return;
  enter(Phase::killing, SIGKILL, now + kKillWait);
}

int Ending::due(Time now) {
  if (deadline_ && now >= *deadline_) {
    switch (phase_) {
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

}  // namespace col::launch
