// The start of a job's ranks, and of the same ranks again; and the end of the job.
#include <fcntl.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include <col/trace.hpp>

#include "common/exit_codes.hpp"
#include "common/write_file.hpp"
#include "launch/attempt.hpp"
#include "launch/job/launch_error.hpp"
#include "launch/processes/job_directory.hpp"
#include "launch/processes/limits.hpp"
#include "launch/processes/processes.hpp"
#include "launch/report/compare_hosts.hpp"
#include "launch/report/report.hpp"
#include "launch/report/report_json.hpp"
#include "launch/report/slow.hpp"
#include "launch/supervise.hpp"

namespace col::launch {
namespace {

using tools::exit_code::kLauncher;

// How long the pipes of ranks that have ended are still read while some process holds them open.
constexpr std::chrono::milliseconds kDrain{500};

}  // namespace

JobResult Supervisor::run() {
  for (const std::string& notice : parts_.placement.notices) say("{}", notice);
  serve_metrics();
  meet_nodes();
  if (!parts_.rendezvous.alone) return run_with_others();
  for (;;) {
    JobStory story = run_attempt(assignment_alone());
    if (!may_restart(story)) return finish(std::move(story));
    ++restarts_;
    say_report(story);
    say("restarting all ranks ({} of {} restarts)", restarts_, parts_.spec.lifecycle.max_restarts);
    flush();
  }
}

Assignment Supervisor::assignment_alone() const {
  const int ranks = parts_.spec.local_ranks();
  const Endpoint master = pick_free_port();
  return {.local_ranks = ranks,
          .world_size = ranks,
          .restart = restarts_,
          .job_id = parts_.job_id,
          .master_address = master.host,
          .master_port = master.port};
}

// Returns when all ranks of this node are gone, with what they left behind.
JobStory Supervisor::run_attempt(const Assignment& assignment) {
  warned_of_stragglers_ = false;
  node_rank_ = assignment.node_rank;
  // An ssh that has gone to the background has left it there by now: all nodes have come.
  if (remotes_) older_than_ranks_ = descendants_of(::getpid());
  if (assignment.restart > 0) {
    for (const std::string& path : remove_leftover_shared_memory())
      say("removed {}, shared memory that the ranks before had left", path);
  }
  output_.forget_ranks(Clock::now());
  input_.reset();
  readers_.clear();
  attempt_ = std::make_unique<Attempt>(AttemptParts{.spec = parts_.spec,
                                                    .programs = parts_.programs,
                                                    .placement = parts_.placement,
                                                    .assignment = assignment,
                                                    .directory = parts_.job_id,
                                                    .host = host_,
                                                    .open_files = open_files_,
                                                    .epoll_fd = epoll_.get(),
                                                    .rank_tag = epoll_tag::kRank,
                                                    .job_began = began_});
  open_desk(attempt_->directory());
  // What has come while there were no ranks is for these.
  if (front_is_gone_)
    attempt_->ending().kill(EndCause::launcher_failed, Clock::now());
  else if (signal_between_ != 0)
    attempt_->ending().on_signal(signal_between_, Clock::now());
  for (const LinkEvent& event : std::exchange(early_, {})) on_link_event(event);
  const auto is_over = [&] { return attempt_->living() == 0 || attempt_->ending().phase() == Ending::Phase::given_up; };
  try {
    start_all();
  } catch (const LaunchError&) {
    attempt_->ending().kill(EndCause::launcher_failed, Clock::now());
    attempt_->signal_all(attempt_->ending().due(Clock::now()));
    if (!link_) output_.drop_unwritten();
    while (!is_over()) step(std::nullopt);
    end_descendants();
    forget_askers();
    attempt_.reset();
    throw;
  }
  while (!is_over()) step(std::nullopt);
  drain();
  JobStory outcome = story();
  take_traces();
  forget_askers();
  if (!attempt_->remove_directory() && outcome.result.error.empty()) {
    outcome.result.error = fmt::format("cannot remove the job directory {}; remove it by hand", attempt_->directory());
  }
  attempt_.reset();
  return outcome;
}

// What the user did not ask for, once the first rank has started.
void Supervisor::say_what_was_done() {
  if (parts_.spec.output.quiet) return;
  if (!output_.made_folder().empty()) say("made the folder '{}' for --output", output_.made_folder());
  const int threads = attempt_->omp_threads(), ranks = attempt_->local_ranks();
  // As many threads as there are processors for are what everybody expects.
  if (ranks > 1 && threads > 0 && threads * ranks < attempt_->cpus())
    say("OMP_NUM_THREADS was unset; it is {} in each of the {} ranks, and {} of {} processors are left over", threads,
        ranks, attempt_->cpus() - threads * ranks, attempt_->cpus());
}

void Supervisor::start_all() {
  const std::optional<Milliseconds> limit = parts_.spec.lifecycle.start_timeout;
  const Time from = attempt_->assignment().restart == 0 ? began_ : Clock::now();
  for (int rank = 0; rank < attempt_->local_ranks(); ++rank) {
    if (attempt_->ending().is_ending()) return;
    start(rank);
    if (limit && Clock::now() > from + *limit) {
      throw LaunchError(kLauncher, "only {} of {} ranks were started within {:.1f} s (--start-timeout)", rank + 1,
                        attempt_->local_ranks(), std::chrono::duration<double>(*limit).count());
    }
    if (rank == 0 && restarts_ == 0) say_what_was_done();
    for (step(Clock::now()); stopped_ && !attempt_->ending().is_ending();) step(std::nullopt);
    if (attempt_->ending().is_ending()) return;
  }
  if (!input_) return;
  const bool is_shared = shared_input_ || (link_ && !parts_.rendezvous.reports);
  if (is_last_start())
    give_input_away();
  else if (is_shared && parts_.spec.input.to == InputSpec::To::all)
    input_->keep_reading();
  input_->start();
  more_output_ = true;  // what came while ranks were being started has had its event
}

bool Supervisor::is_last_start() const {
  return restarts_ >= parts_.spec.lifecycle.max_restarts && !link_;
}

// Ours would keep a writer from noticing that its readers are gone.
void Supervisor::give_input_away() {
  replace_input(null_.get());
  input_is_taken_ = true;
}

void Supervisor::replace_input(int by) {
  const int given = parts_.spec.stdin_fd;
  ::dup3(by, given, given > STDERR_FILENO ? O_CLOEXEC : 0);
}

void Supervisor::start(int local_rank) {
  const InputSpec& input = parts_.spec.input;
  const int given = parts_.spec.stdin_fd;
  const bool to_all = input.to == InputSpec::To::all && given >= 0;
  const bool to_this =
      input.to == InputSpec::To::rank && input.rank == attempt_->global(local_rank) && given >= 0 && !input_is_taken_;
  ChildStreams streams = output_.add_rank(attempt_->names(local_rank), to_this || to_all);
  ChildDescriptors descriptors{.stdin_fd = null_.get(),
                               .stdout_fd = streams.out_fd(),
                               .stderr_fd = streams.err_fd(),
                               .controlling_terminal = streams.is_terminal};
  tools::UniqueFd copy_of_input;
  const bool by_launcher = to_all || streams.keyboard;
  if (by_launcher && !input_) input_ = std::make_unique<Input>(epoll_.get(), epoll_tag::kInput, given);
  if (streams.keyboard) {
    input_->add_terminal(std::move(streams.keyboard));
    descriptors.stdin_fd = streams.out_fd();
  } else if (to_all) {
    copy_of_input = input_->add_pipe();
    descriptors.stdin_fd = copy_of_input.get();
  } else if (to_this) {
    descriptors.stdin_fd = given;
  }
  const pid_t pid = spawn(local_rank, descriptors);
  if (by_launcher) readers_.push_back(local_rank);
  // A restart's ranks read on where those before them have stopped.
  if (to_this && !by_launcher && is_last_start()) give_input_away();
  if (attempt_->watch(local_rank, pid) || std::exchange(said_no_pidfd_, true)) return;
  say("pidfd_open is refused here ({}); which of several ranks ended first is less certain, and "
      "stacks cannot be taken",
      strerror(errno));
}

pid_t Supervisor::spawn(int local_rank, const ChildDescriptors& descriptors) {
  const SpawnResult child = attempt_->spawn(local_rank, descriptors);
  if (child.fork_error == 0) return child.pid;
  // No other try when ranks have ended: they may have been waiting for this one.
  throw LaunchError(kLauncher, "cannot start rank {}: {}", attempt_->global(local_rank),
                    why_no_process(child.fork_error, attempt_->local_ranks() - local_rank));
}

// ---- the end: what is left of the job is read and removed, and its outcome told

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
  std::vector<pid_t> kept = older_than_ranks_;
  if (meeting_ != 0) kept.push_back(meeting_);
  // The others must not take this node for lost meanwhile.
  const auto beat = [this] {
    if (link_) link_->tick(Clock::now());
  };
  if (!has_no_children()) processes_left_ = kill_children(0, Clock::now() + Ending::kKillWait, kept, beat);
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
      tell_lost_output(outcome);
      break;
    case EndCause::node_lost:
    case EndCause::launcher_failed:
      outcome.exit_code = kLauncher;
      break;
  }
  return outcome;
}

// It decides the exit code of a job that was good otherwise.
void Supervisor::tell_lost_output(JobResult& outcome) const {
  const int error = output_.error();
  if (error != EPIPE)
    outcome.error = fmt::format("cannot write the output to {}: {}", output_.error_file(), strerror(error));
  if (outcome.exit_code != 0) return;
  outcome.cause = EndCause::output_closed;
  outcome.exit_code = error == EPIPE ? tools::exit_code::kOutputClosed : kLauncher;
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
  const std::optional<ClockShift> clock = link_ ? link_->clock() : std::nullopt;
  attempt_->add_times(story.ranks, clock ? std::optional(static_cast<double>(clock->error_ns) / 1e9) : std::nullopt);
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

void Supervisor::say_report(const JobStory& story) {
  if (story.result.cause == EndCause::output_closed) return;
  if (story.result.cause == EndCause::none && story.result.error.empty() && !parts_.spec.inspect.report) return;
  if (!story.result.error.empty()) say("{}", story.result.error);
  const LifecycleSpec& limits = parts_.spec.lifecycle;
  ReportStyle style;
  if (story.result.cause == EndCause::timed_out) style.limit = limits.timeout;
  if (story.result.cause == EndCause::exit_timed_out) style.limit = limits.exit_timeout;
  std::vector<std::string> lines = report_lines(story, style);
  if (parts_.spec.inspect.report) {
    for (std::string& line : usage_lines(story, style)) lines.push_back(std::move(line));
    for (const std::string& line : slow_lines(story, style.text))
      lines.push_back(fmt::format("{}: {}", story.tool, line));
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
    say("cannot write the report: {}", error.what());
  }
}

// What the ranks of this node have kept of their calls, before their directory is removed.
void Supervisor::take_traces() {
  if (parts_.spec.inspect.trace_path.empty()) return;
  try {
    forget_traces(attempt_->assignment().restart);
    Timeline own;
    attempt_->add_traces(own);
    if (link_) send_traces(own);
    if (!writes_trace()) return;
    for (const std::string& part : own.pack(std::numeric_limits<std::size_t>::max())) timeline_.add_packed(part);
  } catch (const std::exception& error) {
    say("cannot read a rank's part of the trace: {}", error.what());
  }
}

// As for the report.
bool Supervisor::writes_trace() const {
  return parts_.rendezvous.alone || remotes_ || (node_rank_ <= 0 && parts_.rendezvous.reports);
}

void Supervisor::write_trace(const JobStory& story) {
  const InspectSpec& inspect = parts_.spec.inspect;
  if (inspect.trace_path.empty() || !writes_trace()) return;
  try {
    tools::write_file(inspect.trace_path, timeline_.json(story.job_id, inspect.trace_bytes));
    if (!parts_.spec.output.quiet)
      say("{} has {} events; open it in https://ui.perfetto.dev or chrome://tracing", inspect.trace_path,
          timeline_.events());
  } catch (const std::exception& error) {
    say("cannot write the trace: {}", error.what());
  }
}

JobResult Supervisor::finish(JobStory story) {
  compare_hosts(story);
  if (!front_is_gone_) {
    say_report(story);
    write_json(story);
    write_trace(story);
    flush();
    // Said; what the front would add is what it alone knows.
    if (story.result.cause != EndCause::output_closed) story.result.error.clear();
    if (output_.error() != 0) tell_lost_output(story.result);
  }
  return story.result;
}

}  // namespace col::launch
