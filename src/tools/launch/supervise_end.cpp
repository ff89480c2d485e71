// The end of a job: what is left of it is read and removed, and its outcome told.
#include <string.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include <fmt/format.h>

#include "common/exit_codes.hpp"
#include "common/write_file.hpp"
#include "launch/processes/leftovers.hpp"
#include "launch/processes/processes.hpp"
#include "launch/report/report.hpp"
#include "launch/report/report_json.hpp"
#include "launch/report/report_usage.hpp"
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
  while (!output_.ranks_ended() && !front_is_gone_ && attempt_->ending().cause() != EndCause::interrupted &&
         Clock::now() < latest) {
    step(latest);
  }
  end_descendants();
  flush();
}

void Supervisor::end_descendants() {
  std::vector<pid_t> kept = remotes_ ? remotes_->pids() : std::vector<pid_t>();
  if (meeting_ != 0) kept.push_back(meeting_);
  if (!has_no_children()) processes_left_ = kill_children(0, Clock::now() + Ending::kKillWait, kept);
  child_changed_ = true;  // what it waited by is taken: whether one of those kept has ended is to be asked
}

// No writer is left but the user's reader may be slow. Only an interrupted job leaves output unwritten.
void Supervisor::flush() {
  std::optional<Time> latest;
  for (step(Clock::now()); !output_.ranks_ended() || !output_.all_written(); step(latest)) {
    if (front_is_gone_) return;
    const bool interrupted = signal_between_ != 0 ||
                             (attempt_ && (attempt_->ending().signal() != 0 || attempt_->ending().signalled_after()));
    if (!latest && interrupted) latest = Clock::now() + kDrain;
    if (latest && Clock::now() >= *latest) output_.drop_unwritten();
    // A process that is not of this job holds a pipe: all that the ranks wrote was read.
    if (!more_output_ && output_.all_written()) output_.give_up_rank_pipes(Clock::now());
  }
}

JobResult Supervisor::result() const {
  JobResult outcome;
  Ending& ending = attempt_->ending();
  outcome.cause = ending.cause();
  const bool worst_counts = parts_.spec.lifecycle.exit_policy == ExitPolicy::max;
  outcome.culprit = worst_counts ? attempt_->deciding_rank() : ending.culprit();
  if (outcome.cause == EndCause::none && outcome.culprit >= 0) outcome.cause = EndCause::rank_failed;
  switch (outcome.cause) {
    case EndCause::none:
    case EndCause::rank_failed:  // the story knows the ranks
      break;
    case EndCause::interrupted:
      outcome.signal = ending.signal();
      outcome.exit_code = tools::exit_code::kSignalBase + outcome.signal;
      break;
    case EndCause::timed_out:
    case EndCause::exit_timed_out:
      outcome.exit_code = tools::exit_code::kTimeout;
      break;
    case EndCause::output_closed:
      outcome.exit_code = output_.error() == EPIPE ? tools::exit_code::kOutputClosed : kLauncher;
      if (output_.error() != EPIPE) {
        outcome.error =
            fmt::format("cannot write the ranks' output{}{}: {}", output_.error_file().empty() ? "" : " to ",
                        output_.error_file(), strerror(output_.error()));
      }
      break;
    case EndCause::node_lost:
    case EndCause::launcher_failed:
      outcome.exit_code = kLauncher;
      break;
  }
  return outcome;
}

JobStory Supervisor::story() {
  JobStory story;
  story.tool = parts_.spec.tool;
  story.job_id = attempt_->assignment().job_id;
  story.command_line = parts_.spec.command_line;
  story.directory = current_directory();
  story.started_at = began_at_;
  story.seconds = std::chrono::duration<double>(Clock::now() - began_).count();
  story.nodes = attempt_->assignment().nodes;
  story.restarts = restarts_;
  story.processes_left = processes_left_;
  story.result = result();
  story.ranks = attempt_->stories();
  for (RankStory& rank : story.ranks) {
    if (!rank.status.exited || rank.status.wait_status == 0) continue;
    rank.last_stderr = output_.last_stderr(static_cast<std::size_t>(rank.local_rank));
  }
  if (story.result.cause == EndCause::rank_failed && story.result.culprit >= 0) {
    const auto index = static_cast<std::size_t>(attempt_->deciding_rank() - attempt_->assignment().first_rank);
    story.result.exit_code = exit_code_of(story.ranks[index].status);
  }
  return story;
}

bool Supervisor::may_restart(const JobStory& story) const {
  return story.result.cause == EndCause::rank_failed && restarts_ < parts_.spec.lifecycle.max_restarts &&
         !front_is_gone_ && signal_between_ == 0;
}

void Supervisor::say(const JobStory& story) {
  if (story.result.cause == EndCause::output_closed) return;
  if (story.result.cause == EndCause::none && story.result.error.empty() && !parts_.spec.inspect.report) return;
  if (!story.result.error.empty()) output_.say(fmt::format("{}: {}", parts_.spec.tool, story.result.error));
  const LifecycleSpec& limits = parts_.spec.lifecycle;
  ReportStyle style;
  if (story.result.cause == EndCause::timed_out) style.limit = limits.timeout;
  if (story.result.cause == EndCause::exit_timed_out) style.limit = limits.exit_timeout;
  std::vector<std::string> lines = report_lines(story, style);
  if (parts_.spec.inspect.report) {
    for (std::string& line : usage_lines(story, style)) lines.push_back(std::move(line));
  }
  for (const std::string& line : lines) output_.say(line);
}

void Supervisor::write_json(const JobStory& story) {
  const std::string& path = parts_.spec.inspect.json_path;
  // Of several nodes that report, the first one writes: the path may be the same file on all.
  if (path.empty() || (node_rank_ > 0 && !remotes_)) return;
  const std::string text = report_json_text(story);
  if (path == "-") {
    output_.print(text);
    return;
  }
  try {
    tools::write_file(path, text);
  } catch (const std::exception& error) {
    output_.say(fmt::format("{}: cannot write the report: {}", parts_.spec.tool, error.what()));
  }
}

JobResult Supervisor::finish(JobStory story) {
  if (!front_is_gone_) {
    say(story);
    write_json(story);
    flush();
    // Said; what the front would add is what it alone knows.
    if (story.result.cause != EndCause::output_closed) story.result.error.clear();
  }
  return story.result;
}

}  // namespace col::launch
