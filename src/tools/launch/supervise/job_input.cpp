#include "launch/supervise/job_input.hpp"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "common/exit_codes.hpp"
#include "launch/job/launch_error.hpp"
#include "launch/nodes/agent_job.hpp"

namespace col::launch {

JobInput::JobInput(NodeJob& job) : job_(job), null_(::open("/dev/null", O_RDONLY | O_CLOEXEC)) {
  if (!null_) throw LaunchError(tools::exit_code::kLauncher, "cannot open /dev/null: {}", strerror(errno));
}

void JobInput::share(Remotes& remotes) {
  const Rendezvous& meeting = job_.parts.rendezvous;
  const JobSpec& spec = job_.parts.spec;
  for (std::size_t host = 0; host < meeting.remotes.size(); ++host) {
    if (!reads_input(spec, meeting, meeting.remotes[host])) continue;
    if (!shared_) shared_ = std::make_unique<Input>(job_.events, spec.stdin_fd);
    remotes.give_input(host, shared_->add_pipe());
  }
  if (!shared_) return;
  tools::UniqueFd own;
  if (reads_input_here(spec, meeting)) own = shared_->add_pipe();
  replace(own ? own.get() : null_.get());
  shared_->start();
}

void JobInput::replace(int by) {
  const int given = job_.parts.spec.stdin_fd;
  ::dup3(by, given, given > STDERR_FILENO ? O_CLOEXEC : 0);
}

// Ours would keep a writer from noticing that its readers are gone.
void JobInput::give_away() {
  replace(null_.get());
  is_taken_ = true;
}

void JobInput::forget_ranks() {
  copies_.reset();
  readers_.clear();
}

bool JobInput::is_for_all() const {
  return job_.parts.spec.input.to == InputSpec::To::all && job_.parts.spec.stdin_fd >= 0;
}

bool JobInput::is_for(int local_rank) const {
  const InputSpec& input = job_.parts.spec.input;
  return is_for_all() || (input.to == InputSpec::To::rank && input.rank == job_.attempt->global(local_rank) &&
                          job_.parts.spec.stdin_fd >= 0 && !is_taken_);
}

int JobInput::connect(int local_rank, ChildStreams& streams, tools::UniqueFd& copy) {
  const int given = job_.parts.spec.stdin_fd;
  if (!is_for(local_rank)) return null_.get();
  if (!is_for_all() && !streams.keyboard) return given;
  if (!copies_) copies_ = std::make_unique<Input>(job_.events, given);
  readers_.push_back(local_rank);
  if (streams.keyboard) {
    copies_->add_terminal(std::move(streams.keyboard));
    return streams.out_fd();
  }
  copy = copies_->add_pipe();
  return copy.get();
}

// A restart's ranks read on where those before them have stopped.
void JobInput::on_started(int local_rank) {
  const bool has_copy = std::ranges::find(readers_, local_rank) != readers_.end();
  if (is_for(local_rank) && !has_copy && job_.is_last_start()) give_away();
}

void JobInput::on_all_started() {
  if (!copies_) return;
  const bool is_shared = shared_ || (job_.link && !job_.parts.rendezvous.reports);
  if (job_.is_last_start())
    give_away();
  else if (is_shared && job_.parts.spec.input.to == InputSpec::To::all)
    copies_->keep_reading();
  copies_->start();
  job_.has_more = true;  // what came while ranks were being started has had its event
}

void JobInput::on_rank_end(int local_rank) {
  if (const auto reader = std::ranges::find(readers_, local_rank); reader != readers_.end())
    copies_->on_reader_end(static_cast<std::size_t>(reader - readers_.begin()));
}

void JobInput::set_shared_stopped(bool stopped) {
  if (shared_) stopped ? shared_->suspend() : shared_->resume();
}

bool JobInput::work() {
  const bool more = shared_ && shared_->work();
  return (copies_ && copies_->work()) || more;
}

}  // namespace col::launch
