// The start of a job's ranks, and of the same ranks again.
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include <fmt/format.h>

#include "common/exit_codes.hpp"
#include "launch/epoll_tags.hpp"
#include "launch/job/launch_error.hpp"
#include "launch/processes/leftovers.hpp"
#include "launch/supervise.hpp"

namespace col::launch {
namespace {

using tools::exit_code::kLauncher;

// How long a fork that fails for lack of processes is tried again.
constexpr std::chrono::milliseconds kForkRetry{2000};
constexpr std::chrono::milliseconds kForkPause{10};

}  // namespace

JobResult Supervisor::run() {
  for (const std::string& notice : parts_.placement.notices)
    output_.say(fmt::format("{}: {}", parts_.spec.tool, notice));
  meet_nodes();
  if (!parts_.rendezvous.alone) return run_with_others();
  for (;;) {
    JobStory story = run_attempt(assignment_alone());
    if (!may_restart(story)) return finish(std::move(story));
    ++restarts_;
    say(story);
    output_.say(fmt::format("{}: restarting all ranks ({} of {} restarts)", parts_.spec.tool, restarts_,
                            parts_.spec.lifecycle.max_restarts));
    flush();
  }
}

Assignment Supervisor::assignment_alone() const {
  const int ranks = parts_.spec.local_ranks();
  return {.local_ranks = ranks,
          .world_size = ranks,
          .restart = restarts_,
          .job_id = parts_.job_id,
          .master_port = pick_free_port()};
}

// Returns when all ranks of this node are gone, with what they left behind.
JobStory Supervisor::run_attempt(const Assignment& assignment) {
  warned_of_stragglers_ = false;
  node_rank_ = assignment.node_rank;
  if (assignment.restart > 0) {
    for (const std::string& path : remove_leftover_shared_memory())
      output_.say(fmt::format("{}: removed {}, shared memory that the ranks before had left", parts_.spec.tool, path));
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
  stacks_.reset();
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
    attempt_.reset();
    throw;
  }
  while (!is_over()) step(std::nullopt);
  drain();
  JobStory outcome = story();
  if (!attempt_->remove_directory() && outcome.result.error.empty()) {
    outcome.result.error = fmt::format("cannot remove the job directory {}; remove it by hand", attempt_->directory());
  }
  attempt_.reset();
  return outcome;
}

void Supervisor::start_all() {
  const std::optional<Milliseconds> limit = parts_.spec.lifecycle.start_timeout;
  const Time from = attempt_->assignment().restart == 0 ? began_ : Clock::now();
  for (int rank = 0; rank < attempt_->local_ranks(); ++rank) {
    if (attempt_->ending().is_ending()) return;
    start(rank);
    if (limit && Clock::now() > from + *limit) {
      throw LaunchError(kLauncher,
                        fmt::format("only {} of {} ranks were started within {:.1f} s (--start-timeout)", rank + 1,
                                    attempt_->local_ranks(), std::chrono::duration<double>(*limit).count()));
    }
    if (rank == 0 && restarts_ == 0 && attempt_->local_ranks() > 1 && attempt_->omp_threads() > 0) {
      output_.say(fmt::format("{}: OMP_NUM_THREADS was unset; it is {} in each of the {} ranks", parts_.spec.tool,
                              attempt_->omp_threads(), attempt_->local_ranks()));
    }
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
  output_.say(
      fmt::format("{}: pidfd_open is refused here ({}); which of several ranks ended first is less certain, and "
                  "stacks cannot be taken",
                  parts_.spec.tool, strerror(errno)));
}

pid_t Supervisor::spawn(int local_rank, const ChildDescriptors& descriptors) {
  const Time give_up = Clock::now() + kForkRetry;
  SpawnResult child = attempt_->spawn(local_rank, descriptors);
  while (child.fork_error == EAGAIN && Clock::now() < give_up) {
    step(Clock::now() + kForkPause);  // a rank that ends meanwhile makes room
    child = attempt_->spawn(local_rank, descriptors);
  }
  if (child.fork_error != 0) {
    throw LaunchError(kLauncher, fmt::format("cannot start rank {}: {}; allow more processes (ulimit -u, pids.max) or "
                                             "use fewer ranks",
                                             attempt_->global(local_rank), strerror(child.fork_error)));
  }
  return child.pid;
}

}  // namespace col::launch
