#include "launch/supervise/job_life.hpp"

#include <chrono>

#include "common/exit_codes.hpp"

namespace col::launch {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kConnectPause{100};
// How long the pipes of ranks that have ended are still read while some process holds them open; and how long a user
// who has interrupted the job may take to read.
constexpr milliseconds kDrain{500};
constexpr milliseconds kFarewell{3'000};
constexpr milliseconds kLastOutput{30'000};  // from the last time at which our own reader was slow

}  // namespace

void JobLife::enter(Stage stage, Time now, std::optional<Time> limit) {
  stage_ = stage;
  deadline_ = limit;
  if (stage == Stage::joining) deadline_ = now + kConnectPause;
  if (stage == Stage::draining) deadline_ = now + kDrain;
  if (stage == Stage::parting) deadline_ = now + kFarewell;
  if (stage == Stage::collecting) deadline_ = now + kLastOutput;
}

bool JobLife::lasts(const Facts& facts, Time now) {
  switch (stage_) {
    case Stage::joining:
      return !is_late(now);
    case Stage::awaiting:
      // Reports the first signal. A user who sends more does not want to wait for the others.
      return facts.no_news && !front_is_gone_ && signals_ <= (facts.others_run ? 2 : 1);
    case Stage::starting:
      return stopped_ && !facts.ranks_end;
    case Stage::running:
      return facts.ranks_live;
    case Stage::draining:
      return facts.pipes_open && !front_is_gone_ && !facts.interrupted && !is_late(now);
    case Stage::writing:
      // No writer is left but the user's reader may be slow. Only an interrupted job leaves output unwritten.
      if (!deadline_ && (facts.interrupted || facts.signalled || signal_ != 0)) deadline_ = now + kDrain;
      return (facts.pipes_open || facts.unwritten) && !front_is_gone_;
    case Stage::parting:
      return facts.serves && !front_is_gone_ && !is_late(now);
    case Stage::collecting:
      if (facts.unwritten) deadline_ = now + kLastOutput;
      return (facts.others_run || facts.pipes_open) && !front_is_gone_ && signals_ == 0 && !is_late(now);
  }
  return false;
}

void JobLife::on_signal(int signal) noexcept {
  if (signals_++ == 0) signal_ = signal;
}

JobResult JobLife::cut_short() const {
  if (signal_ == 0) return launcher_failure(tools::exit_code::kLauncher, {});
  return {.exit_code = tools::exit_code::kSignalBase + signal_,
          .signal = signal_,
          .cause = EndCause::interrupted,
          .error = {}};
}

bool JobLife::is_new_round() noexcept {
  return is_new_round(++own_signals_);
}

bool JobLife::is_new_round(int round) noexcept {
  if (round <= round_) return false;
  round_ = round;
  return true;
}

bool JobLife::may_start_again(EndCause cause, int restarts, int max_restarts) const noexcept {
  return cause == EndCause::rank_failed && restarts < max_restarts && !front_is_gone_ && signal_ == 0;
}

}  // namespace col::launch
