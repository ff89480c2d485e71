#include "launch/supervise.hpp"

#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include <fmt/format.h>

#include "common/exit_codes.hpp"
#include "launch/descriptors.hpp"
#include "launch/launch_error.hpp"
#include "launch/processes.hpp"
#include "launch/program.hpp"
#include "launch/report.hpp"
#include "launch/spawn.hpp"

namespace col::launch {
namespace {

using tools::UniqueFd;
using tools::exit_code::kLauncher;

// How long a fork that fails for want of processes is tried again.
constexpr std::chrono::milliseconds kForkRetry{2000};
constexpr std::chrono::milliseconds kForkPause{10};

// What an epoll event is about: the kind in the upper half, an index in the lower.
constexpr std::uint64_t kLifeline = 1ULL << 32, kSignals = 2ULL << 32, kRank = 3ULL << 32, kPipe = 4ULL << 32,
                        kSink = 5ULL << 32;
constexpr std::uint64_t kIndexMask = 0xffffffffULL;

int milliseconds_until(std::chrono::steady_clock::time_point time) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(time - std::chrono::steady_clock::now());
  return static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 3'600'000));
}

}  // namespace

Supervisor::Supervisor(const JobParts& parts)
    : parts_(parts),
      open_files_(raise_open_files(parts.spec.ranks)),
      epoll_(make_epoll()),
      null_(::open("/dev/null", O_RDONLY | O_CLOEXEC)),
      output_(epoll_.get(), kPipe, kSink, parts.spec.stdout_fd, parts.spec.stderr_fd),
      ranks_(static_cast<std::size_t>(parts.spec.ranks)) {
  if (!null_) throw LaunchError(kLauncher, fmt::format("cannot open /dev/null: {}", strerror(errno)));
  watch_readable(epoll_.get(), parts_.lifeline, kLifeline);
  watch_readable(epoll_.get(), parts_.signals.fd(), kSignals);
}

JobResult Supervisor::run() {
  try {
    start_all();
  } catch (const LaunchError&) {
    ending_.kill(Ending::Why::launcher_failed, Clock::now());
    output_.drop_unwritten();
    while (living_ > 0 && ending_.phase() != Ending::Phase::given_up) step(std::nullopt);
    end_descendants();
    throw;
  }
  while (living_ > 0 && ending_.phase() != Ending::Phase::given_up) step(std::nullopt);
  drain();
  const JobResult outcome = result();
  if (!front_is_gone_) say_how_it_ended(outcome);
  return outcome;
}

void Supervisor::start_all() {
  for (int rank = 0; rank < parts_.spec.ranks; ++rank) {
    start(rank);
    if (rank == 0 && parts_.spec.ranks > 1 && parts_.environment.omp_threads() > 0) {
      output_.say(fmt::format("{}: OMP_NUM_THREADS was unset; it is {} in each of the {} ranks", parts_.spec.tool,
                              parts_.environment.omp_threads(), parts_.spec.ranks));
    }
    for (step(Clock::now()); stopped_ && ending_.why() == Ending::Why::not_ending;) step(std::nullopt);
    if (ending_.why() != Ending::Why::not_ending) return;
  }
}

void Supervisor::start(int rank) {
  OutputPipe out = make_output_pipe();
  OutputPipe err = make_output_pipe();
  const int given = parts_.spec.stdin_fd;
  const bool takes_stdin = rank == 0 && given >= 0;
  const pid_t pid = spawn_rank(rank, takes_stdin ? given : null_.get(), out.write.get(), err.write.get());
  // Ours would keep a writer from noticing that rank 0 is gone.
  if (takes_stdin) ::dup3(null_.get(), given, given > STDERR_FILENO ? O_CLOEXEC : 0);

  Rank& entry = ranks_[static_cast<std::size_t>(rank)];
  entry.status.pid = pid;
  entry.started = Clock::now();
  UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!pidfd) throw LaunchError(kLauncher, fmt::format("cannot watch rank {}: {}", rank, strerror(errno)));
  watch_readable(epoll_.get(), pidfd.get(), kRank | static_cast<std::uint64_t>(rank));
  entry.pidfd = std::move(pidfd);
  ++living_;
  const std::string label = parts_.spec.label ? fmt::format("[{}] ", rank) : "";
  output_.add(Output::Stream::out, label, std::move(out.read));
  output_.add(Output::Stream::err, label, std::move(err.read));
}

pid_t Supervisor::spawn_rank(int rank, int stdin_fd, int stdout_fd, int stderr_fd) {
  std::vector<char*> arguments;
  for (const std::string& argument : parts_.spec.command) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  const std::vector<char*> environment = parts_.environment.of_rank(rank);
  const ChildPlan plan{.path = parts_.program.c_str(),
                       .arguments = arguments.data(),
                       .environment = environment.data(),
                       .stdin_fd = stdin_fd,
                       .stdout_fd = stdout_fd,
                       .stderr_fd = stderr_fd,
                       .keep_fds = parts_.spec.keep_fds,
                       .open_files = open_files_,
                       .ignore_hangup = hangup_is_ignored()};
  const Time give_up = Clock::now() + kForkRetry;
  SpawnResult child = spawn(plan);
  while (child.fork_error == EAGAIN && Clock::now() < give_up) {
    step(Clock::now() + kForkPause);  // a rank that ends meanwhile makes room
    child = spawn(plan);
  }
  if (child.fork_error != 0) {
    throw LaunchError(kLauncher, fmt::format("cannot start rank {}: {}; allow more processes (ulimit -u, pids.max) or "
                                             "use fewer ranks",
                                             rank, strerror(child.fork_error)));
  }
  if (child.exec_error != 0) refuse_program(parts_.program, child.exec_error);
  return child.pid;
}

void Supervisor::step(std::optional<Time> latest) {
  for (const std::optional<Time>& due : {ending_.deadline(), output_.deadline()}) {
    if (due && (!latest || *due < *latest)) latest = due;
  }
  const int timeout_ms = more_output_ || child_changed_ ? 0 : latest ? milliseconds_until(*latest) : -1;
  std::array<epoll_event, 256> events;
  // In the order in which they happened: so the first rank to fail is seen first.
  const int count = ::epoll_wait(epoll_.get(), events.data(), events.size(), timeout_ms);
  for (int index = 0; index < count; ++index) dispatch(events[static_cast<std::size_t>(index)].data.u64);
  if (child_changed_) reap_adopted();
  const Time now = Clock::now();
  more_output_ = output_.work(now);
  if (output_.error() != 0) ending_.on_output_closed(now);
  if (const int signal = ending_.due(now); signal != 0) signal_ranks(signal);
}

void Supervisor::dispatch(std::uint64_t event) {
  const std::size_t index = event & kIndexMask;
  switch (event & ~kIndexMask) {
    case kLifeline:
      return on_lifeline();
    case kSignals:
      while (const int signal = parts_.signals.next()) child_changed_ = child_changed_ || signal == SIGCHLD;
      return;
    case kRank:
      return on_rank_end(static_cast<int>(index));
    case kPipe:
      return output_.on_pipe(index);
    case kSink:
      return output_.on_sink(index);
    default:
      return;
  }
}

void Supervisor::on_lifeline() {
  unsigned char forwarded[64];
  const ssize_t count = ::read(parts_.lifeline, forwarded, sizeof forwarded);
  if (count == 0) {
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, parts_.lifeline, nullptr);
    front_is_gone_ = true;
    output_.drop_unwritten();
    ending_.kill(Ending::Why::launcher_failed, Clock::now());
  }
  for (ssize_t index = 0; index < count; ++index) on_forwarded(forwarded[index]);
}

void Supervisor::on_forwarded(int signal) {
  if (ends_job(signal)) {
    ending_.on_signal(signal, Clock::now());
    if (const int now_due = ending_.due(Clock::now()); now_due != 0) signal_ranks(now_due);
  } else if (signal == SIGTSTP || signal == SIGCONT) {
    set_stopped(signal == SIGTSTP);
  } else {
    for (const Rank& rank : ranks_) {
      if (rank.pidfd) ::kill(rank.status.pid, signal);
    }
  }
}

void Supervisor::set_stopped(bool stopped) {
  // A job that is ending goes on: its ranks' time is running out.
  if (stopped && ending_.why() != Ending::Why::not_ending) return;
  stopped_ = stopped;
  for (const Rank& rank : ranks_) {
    // Not SIGTSTP: it does nothing in the ranks' session, which has no shell.
    if (rank.pidfd) ::kill(-rank.status.pid, stopped ? SIGSTOP : SIGCONT);
  }
}

void Supervisor::on_rank_end(int rank) {
  Rank& entry = ranks_[static_cast<std::size_t>(rank)];
  RankStatus& status = entry.status;
  if (!entry.pidfd || ::waitpid(status.pid, &status.wait_status, WNOHANG) != status.pid) return;
  entry.pidfd.reset();
  --living_;
  const Time now = Clock::now();
  status.exited = true;
  status.seconds = std::chrono::duration<double>(now - entry.started).count();
  const bool is_first = ending_.why() == Ending::Why::not_ending;
  if (status.wait_status == 0) {
    const auto is_unfinished = [](const Rank& other) { return !other.status.exited; };
    status.walked_out = is_first && uses_col(rank) && std::any_of(ranks_.begin(), ranks_.end(), is_unfinished);
    return;
  }

  const std::optional<RankError> said = read_error_file(parts_.directory.error_file(rank));
  status.collateral = said && said->is_collateral();
  const int by_signal = WIFSIGNALED(status.wait_status) ? WTERMSIG(status.wait_status) : 0;
  ending_.on_failure({rank, status.collateral, by_signal, is_first && others_may_notice()}, now);
  if (is_first && !status.collateral) {
    parts_.page.abort(
        {ErrorCode::peer_lost, rank,
         fmt::format("rank {} {}; its own output says why", rank, describe_wait_status(status.wait_status))});
  }
}

// Orphans of the job become our children; those that have ended must not stay behind as zombies.
void Supervisor::reap_adopted() {
  child_changed_ = false;
  siginfo_t info{};
  while (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0) {
    const bool is_rank = std::any_of(ranks_.begin(), ranks_.end(),
                                     [&](const Rank& rank) { return rank.pidfd && rank.status.pid == info.si_pid; });
    if (is_rank) {
      child_changed_ = true;  // its own event is on the way; then look again
      return;
    }
    ::waitpid(info.si_pid, nullptr, 0);
    info.si_pid = 0;
  }
}

void Supervisor::signal_ranks(int signal) {
  for (Rank& rank : ranks_) {
    // Not reaped yet, so neither the pid nor the group can have been given to a stranger.
    if (!rank.pidfd) continue;
    siginfo_t ended{};
    ::waitid(P_PID, static_cast<id_t>(rank.status.pid), &ended, WEXITED | WNOHANG | WNOWAIT);
    if (ended.si_pid == 0) {  // else it did so on its own, and its event is on the way
      rank.status.told_to_end = true;
      rank.status.needed_kill = rank.status.needed_kill || signal == SIGKILL;
    }
    ::kill(-rank.status.pid, signal);
    ::kill(-rank.status.pid, SIGCONT);  // a stopped process would not see the signal
  }
}

bool Supervisor::uses_col(int rank) const {
  const RankActivity::State state = parts_.page.record(rank).read().state;
  return state != RankActivity::State::absent && state != RankActivity::State::finished;
}

bool Supervisor::others_may_notice() const {
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    if (ranks_[rank].pidfd && uses_col(static_cast<int>(rank))) return true;
  }
  return false;
}

}  // namespace col::launch
