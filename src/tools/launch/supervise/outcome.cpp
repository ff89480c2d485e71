// How a job ended: what an Attempt knows of its ranks, and what is told of it.
#include <string.h>
#include <unistd.h>

#include <cerrno>
#include <exception>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <col/trace.hpp>

#include "common/exit_codes.hpp"
#include "common/text.hpp"
#include "common/write_file.hpp"
#include "launch/processes/processes.hpp"
#include "launch/report/look.hpp"
#include "launch/report/rank_words.hpp"
#include "launch/report/report.hpp"
#include "launch/report/report_json.hpp"
#include "launch/supervise/node_job.hpp"

namespace col::launch {

void Attempt::remember_calls() {
  if (!remembered_.empty()) return;
  remembered_.resize(ranks_.size());
  look_at_ranks(*page_, remembered_);
}

void Attempt::look_at_calls(Time now) {
  if (watch_ && now >= watch_->due()) watch_->look(*page_);
}

void Attempt::add_times(std::vector<RankStory>& stories, std::optional<double> distance) {
  if (!watch_) return;
  std::vector<CallTimes> times = watch_->take(*page_);
  for (std::size_t i = 0; i < stories.size(); ++i) {
    stories[i].times = std::move(times[i]);
    stories[i].times.distance = distance;
  }
}

std::vector<RankStory> Attempt::stories_now(std::size_t most_calls, bool with_use) {
  std::vector<RankStory> now = stories();
  if (now.empty()) return now;
  look_at_ranks(*page_, now, most_calls);
  if (with_use) use_.look(*page_, now);
  return now;
}

void Attempt::add_traces(Timeline& timeline) const {
  for (std::size_t place = 0; place < ranks_.size(); ++place) {
    const std::string file = fmt::format("{}/{}", directory_.trace(), global(static_cast<int>(place)));
    // A program that has called nothing of col has none.
    if (::access(file.c_str(), F_OK) == 0) timeline.add_file(file);
  }
}

void Attempt::keep_stack(pid_t pid, Stack stack) {
  for (Rank& rank : ranks_) {
    if (rank.status.pid == pid) rank.stack = std::move(stack);
  }
}

std::vector<RankStory> Attempt::stories() const {
  std::vector<RankStory> stories;
  for (int rank = 0; rank < static_cast<int>(ranks_.size()); ++rank) {
    const Rank& entry = ranks_[static_cast<std::size_t>(rank)];
    const bool is_told_of = entry.was_in || places_.is_in(rank) || !entry.before;  // else the rank before is
    RankStory story;
    story.rank = global(rank);
    story.local_rank = rank;
    story.node_rank = parts_.assignment.node_rank;
    story.host = parts_.host;
    if (rank < local_ranks()) story.cpus = parts_.placement.binding.cpus[static_cast<std::size_t>(rank)];
    story.why_not = parts_.placement.binding.why_not;
    story.status = is_told_of ? entry.status : *entry.before;
    story.epoch = is_told_of ? entry.epoch : entry.epoch_before;
    story.restarts = places_.restarts(rank);
    story.is_spare = is_told_of && !entry.was_in && !places_.is_in(rank);
    if (!remembered_.empty()) {
      const RankStory& seen = remembered_[static_cast<std::size_t>(rank)];
      story.last = seen.last;
      story.seen_ns = seen.seen_ns;
      story.history = seen.history;
    }
    story.stack = entry.stack;
    if (entry.status.exited && entry.status.wait_status != 0) {
      story.said = read_error_files(directory_.error_file(rank), directory_.torch_error_file(rank));
    }
    stories.push_back(std::move(story));
  }
  return stories;
}

namespace {

using tools::exit_code::kLauncher;

JobResult result_of(const NodeJob& job) {
  JobResult outcome;
  Ending& ending = job.attempt->ending();
  outcome.cause = ending.cause();
  outcome.culprit = ending.culprit();
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
  apply_exit_policy(story.result, story.ranks, life.exit_policy);
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
