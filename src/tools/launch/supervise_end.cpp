// The end of a job: what is left of it is read and removed, and its outcome told.
#include <string.h>
#include <sys/wait.h>

#include <cerrno>

#include <fmt/format.h>

#include "common/exit_codes.hpp"
#include "launch/processes.hpp"
#include "launch/report.hpp"
#include "launch/supervise.hpp"

namespace col::launch {
namespace {

using tools::exit_code::kLauncher;

// How long the pipes of ranks that have ended are still read while some process holds them open.
constexpr std::chrono::milliseconds kDrain{500};

}  // namespace

// All ranks have ended: reads what they left in their pipes, ends what they left behind, writes the rest.
void Supervisor::drain() {
  const Time latest = Clock::now() + kDrain;
  while (!output_.all_ended() && !front_is_gone_ && ending_.why() != Ending::Why::interrupted &&
         Clock::now() < latest) {
    step(latest);
  }
  end_descendants();
  flush();
}

void Supervisor::end_descendants() {
  if (!has_no_children()) kill_children(0, Clock::now() + Ending::kKillWait);
}

// No writer is left but the user's reader may be slow. Only an interrupted job leaves output unwritten.
void Supervisor::flush() {
  std::optional<Time> latest;
  for (step(Clock::now()); !output_.all_ended() || !output_.all_written(); step(latest)) {
    if (front_is_gone_) return;
    if (!latest && (ending_.why() == Ending::Why::interrupted || ending_.signalled_after()))
      latest = Clock::now() + kDrain;
    if (latest && Clock::now() >= *latest) output_.drop_unwritten();
    // A process that is not of this job holds a pipe: all that the ranks wrote was read.
    if (!more_output_ && output_.all_written()) output_.give_up_pipes(Clock::now());
  }
}

JobResult Supervisor::result() {
  JobResult outcome;
  for (const Rank& rank : ranks_) outcome.ranks.push_back(rank.status);
  switch (ending_.why()) {
    case Ending::Why::not_ending:
      break;
    case Ending::Why::rank_failed: {
      outcome.culprit = ending_.culprit();
      const RankStatus& culprit = outcome.ranks[static_cast<std::size_t>(outcome.culprit)];
      outcome.exit_code = WIFSIGNALED(culprit.wait_status)
                              ? tools::exit_code::kSignalBase + WTERMSIG(culprit.wait_status)
                              : WEXITSTATUS(culprit.wait_status);
      break;
    }
    case Ending::Why::interrupted:
      outcome.signal = ending_.signal();
      outcome.exit_code = tools::exit_code::kSignalBase + outcome.signal;
      break;
    case Ending::Why::output_closed:
      outcome.exit_code = output_.error() == EPIPE ? tools::exit_code::kOutputClosed : kLauncher;
      if (output_.error() != EPIPE) {
        outcome.error = fmt::format("cannot write the ranks' output: {}", strerror(output_.error()));
      }
      break;
    case Ending::Why::launcher_failed:
      outcome.exit_code = kLauncher;
      break;
  }
  return outcome;
}

void Supervisor::say_how_it_ended(const JobResult& outcome) {
  if (ending_.why() == Ending::Why::output_closed) return;
  std::optional<RankError> said;
  if (outcome.culprit >= 0) said = read_error_file(parts_.directory.error_file(outcome.culprit));
  for (const std::string& line : report_lines(outcome, parts_.spec.tool, said)) output_.say(line);
  flush();
}

}  // namespace col::launch
