// One attempt: the start of this node's ranks, until all are gone.
#include <string.h>

#include <cerrno>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "common/exit_codes.hpp"
#include "launch/job/launch_error.hpp"
#include "launch/processes/limits.hpp"
#include "launch/processes/processes.hpp"
#include "launch/supervise/supervisor.hpp"

namespace col::launch {

using tools::exit_code::kLauncher;

// Returns when all ranks of this node are gone, with what they left behind.
JobStory Supervisor::run_attempt(const Assignment& assignment) {
  warned_of_stragglers_ = false;
  job_.node_rank = assignment.node_rank;
  nodes_.before_ranks();
  if (assignment.restart > 0) {
    for (const std::string& path : remove_leftover_shared_memory())
      job_.say("removed {}, shared memory that the ranks before had left", path);
  }
  job_.output.forget_ranks(Clock::now());
  input_.forget_ranks();
  job_.attempt = std::make_unique<Attempt>(
      AttemptParts{.spec = job_.parts.spec,
                   .programs = job_.parts.programs,
                   .placement = job_.parts.placement,
                   .assignment = assignment,
                   .directory = job_.parts.job_id,
                   .host = job_.host,
                   .open_files = job_.open_files,
                   .events = job_.events,
                   .job_began = job_.began,
                   .on_end = [this](int local_rank, bool failed) { on_rank_end(local_rank, failed); },
                   .on_all_in_barrier = [this](const PmiServer::Entries& put) { on_all_in_barrier(put); }});
  Attempt& attempt = *job_.attempt;
  asking_.open_desk(attempt.directory());
  // These get all that has come while there were no ranks.
  if (job_.life.front_is_gone())
    attempt.ending().kill(EndCause::launcher_failed, Clock::now());
  else if (job_.life.signal() != 0)
    attempt.ending().on_signal(job_.life.signal(), Clock::now());
  nodes_.obey_early();
  try {
    start_all();
  } catch (const LaunchError&) {
    attempt.ending().kill(EndCause::launcher_failed, Clock::now());
    attempt.signal_all(attempt.ending().due(Clock::now()));
    if (!job_.link) job_.output.drop_unwritten();
    wait_in(Stage::running);
    end_descendants();
    forget_askers();
    job_.attempt.reset();
    throw;
  }
  wait_in(Stage::running);
  drain();
  JobStory outcome = story_of(job_);
  traces_.take();
  forget_askers();
  if (!attempt.remove_directory() && outcome.result.error.empty()) {
    outcome.result.error = fmt::format("cannot remove the job directory {}; remove it by hand", attempt.directory());
  }
  job_.attempt.reset();
  return outcome;
}

// Names all that the user did not ask for, once the first rank has started.
void Supervisor::say_what_was_done() {
  if (job_.parts.spec.output.quiet) return;
  if (!job_.output.made_folder().empty()) job_.say("made the folder '{}' for --output", job_.output.made_folder());
  const Attempt& attempt = *job_.attempt;
  const int threads = attempt.omp_threads(), ranks = attempt.local_ranks();
  // As many threads as there are processors for are what everybody expects.
  if (ranks > 1 && threads > 0 && threads * ranks < attempt.cpus())
    job_.say("OMP_NUM_THREADS was unset; it is {} in each of the {} ranks, and {} of {} processors are left over",
             threads, ranks, attempt.cpus() - threads * ranks, attempt.cpus());
}

void Supervisor::start_all() {
  Attempt& attempt = *job_.attempt;
  const std::optional<Milliseconds> limit = job_.parts.spec.lifecycle.start_timeout;
  const Time from = attempt.assignment().restart == 0 ? job_.began : Clock::now();
  for (int rank = 0; rank < attempt.local_ranks() + job_.parts.spec.lifecycle.spares; ++rank) {
    if (attempt.ending().is_ending()) return;
    start(rank);
    if (limit && Clock::now() > from + *limit) {
      throw LaunchError(kLauncher, "only {} of {} ranks were started within {:.1f} s (--start-timeout)", rank + 1,
                        attempt.local_ranks(), std::chrono::duration<double>(*limit).count());
    }
    if (rank == 0 && job_.restarts == 0) say_what_was_done();
    step(Clock::now());
    wait_in(Stage::starting);
    if (attempt.ending().is_ending()) return;
  }
  input_.on_all_started();
  job_.has_more = true;  // the last rank may have ended already: then those that sleep are to be ended now
}

// One that joins later reads no input.
void Supervisor::start(int place) {
  const bool reads = !job_.attempt->joins(place);
  ChildStreams streams = job_.output.add_rank(job_.attempt->names(place), reads && input_.is_for(place));
  tools::UniqueFd copy_of_input;
  const int input = reads ? input_.connect(place, streams, copy_of_input) : input_.nothing();
  const pid_t pid = spawn(place, {.stdin_fd = input,
                                  .stdout_fd = streams.out_fd(),
                                  .stderr_fd = streams.err_fd(),
                                  .controlling_terminal = streams.is_terminal});
  if (reads) input_.on_started(place);
  if (job_.attempt->watch(place, pid) || std::exchange(said_no_pidfd_, true)) return;
  job_.say(
      "pidfd_open is refused here ({}); which of several ranks ended first is less certain, and "
      "stacks cannot be taken",
      strerror(errno));
}

pid_t Supervisor::spawn(int local_rank, const ChildDescriptors& descriptors) {
  const SpawnResult child = job_.attempt->spawn(local_rank, descriptors);
  if (child.fork_error == 0) return child.pid;
  // No other try when ranks have ended: they may have been waiting for this one.
  throw LaunchError(kLauncher, "cannot start rank {}: {}", job_.attempt->global(local_rank),
                    why_no_process(child.fork_error, job_.attempt->local_ranks() - local_rank));
}

// All ranks have ended: reads what they left in their pipes, ends what they left behind, writes the rest.
void Supervisor::drain() {
  wait_in(Stage::draining);
  end_descendants();
  flush();
}

void Supervisor::end_descendants() {
  // The others must not take this node for lost meanwhile.
  const auto beat = [this] {
    if (job_.link) job_.link->tick(Clock::now());
  };
  if (!has_no_children())
    job_.processes_left = kill_children(0, Clock::now() + Ending::kKillWait, nodes_.not_of_ranks(), beat);
  child_changed_ = true;  // what it waited by is taken: whether one of those kept has ended is to be asked
}

}  // namespace col::launch
