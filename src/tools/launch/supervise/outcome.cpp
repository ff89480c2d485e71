#include "launch/supervise/outcome.hpp"

#include <string.h>

#include <cerrno>
#include <exception>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "common/exit_codes.hpp"
#include "common/text.hpp"
#include "common/write_file.hpp"
#include "launch/processes/processes.hpp"
#include "launch/report/report.hpp"
#include "launch/report/report_json.hpp"
#include "launch/report/slow.hpp"

namespace col::launch {
namespace {

using tools::exit_code::kLauncher;

JobResult result_of(const NodeJob& job) {
  JobResult outcome;
  Ending& ending = job.attempt->ending();
  outcome.cause = ending.cause();
  const bool worst_counts = job.parts.spec.lifecycle.exit_policy == ExitPolicy::max;
  outcome.culprit = worst_counts ? job.attempt->deciding_rank() : ending.culprit();
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
      tell_lost_output(job, outcome);
      break;
    case EndCause::node_lost:
    case EndCause::launcher_failed:
      outcome.exit_code = kLauncher;
      break;
  }
  return outcome;
}

}  // namespace

void tell_lost_output(const NodeJob& job, JobResult& outcome) {
  const int error = job.output.error();
  if (error != EPIPE)
    outcome.error = fmt::format("cannot write the output to {}: {}", job.output.error_file(), strerror(error));
  if (outcome.exit_code != 0) return;
  outcome.cause = EndCause::output_closed;
  outcome.exit_code = error == EPIPE ? tools::exit_code::kOutputClosed : kLauncher;
}

JobStory story_of(const NodeJob& job) {
  JobStory story = job.story();
  story.command_line = job.parts.spec.command_line;
  story.directory = current_directory();
  story.processes_left = job.processes_left;
  story.result = result_of(job);
  story.epochs = job.attempt->epochs();
  story.ranks = job.attempt->stories();
  const std::optional<ClockShift> clock = job.link ? job.link->clock() : std::nullopt;
  job.attempt->add_times(story.ranks, clock ? std::optional(static_cast<double>(clock->error_ns) / 1e9) : std::nullopt);
  for (RankStory& rank : story.ranks) {
    if (!rank.status.exited || rank.status.wait_status == 0) continue;
    rank.last_stderr = job.output.last_stderr(static_cast<std::size_t>(rank.local_rank));
  }
  const LifecycleSpec& life = job.parts.spec.lifecycle;
  if (story.result.cause == EndCause::rank_failed && life.has_epochs()) {
    const RankStory* const failed = failure_that_counts(story.ranks, life.exit_policy);
    if (failed != nullptr) {
      story.result.culprit = failed->rank;
      story.result.exit_code = exit_code_of(failed->status);
      return story;
    }
    // Unless too many were lost: then the first of them counts, which is in an epoch before.
    if (!job.attempt->ending().is_ending()) {
      story.result = {};
      return story;
    }
  }
  if (story.result.cause == EndCause::rank_failed && story.result.culprit >= 0) {
    const auto index = static_cast<std::size_t>(job.attempt->deciding_rank() - job.attempt->assignment().first_rank);
    story.result.exit_code = exit_code_of(story.ranks[index].status);
  }
  return story;
}

void say_report(NodeJob& job, const JobStory& story) {
  if (story.result.cause == EndCause::output_closed) return;
  if (story.result.cause == EndCause::none && story.result.error.empty() && !job.parts.spec.inspect.report) return;
  if (!story.result.error.empty()) job.say("{}", story.result.error);
  const LifecycleSpec& limits = job.parts.spec.lifecycle;
  ReportStyle style;
  if (story.result.cause == EndCause::timed_out) style.limit = limits.timeout;
  if (story.result.cause == EndCause::exit_timed_out) style.limit = limits.exit_timeout;
  std::vector<std::string> lines = report_lines(story, style);
  if (job.parts.spec.inspect.report) {
    for (const tools::Part& part : {usage_part(story), epochs_part(story), slow_part(story)}) {
      for (const std::string& line : tools::lines_of(report_text(part, style.text, "")))
        lines.push_back(fmt::format("{}: {}", story.tool, line));
    }
  }
  for (const std::string& line : lines) job.output.say(line);
}

void write_json(NodeJob& job, const JobStory& story) {
  const std::string& path = job.parts.spec.inspect.json_path;
  // The first one of several nodes that report writes: the path may be the same file on all.
  if (path.empty() || (job.node_rank > 0 && !job.starts_others())) return;
  const std::string text = report_json_text(story);
  if (path == "-") {
    job.output.print(text);
    return;
  }
  try {
    tools::write_file(path, text);
  } catch (const std::exception& error) {
    job.say("cannot write the report: {}", error.what());
  }
}

}  // namespace col::launch
