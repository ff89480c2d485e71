#include "launch/supervise/attempt.hpp"

#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include <fmt/format.h>

#include <col/error.hpp>
#include <col/trace.hpp>

#include "common/exit_codes.hpp"
#include "launch/job/launch_error.hpp"
#include "launch/place/cpu_quota.hpp"
#include "launch/processes/program.hpp"
#include "launch/processes/signals.hpp"
#include "launch/report/look.hpp"
#include "launch/report/report.hpp"

namespace col::launch {
namespace {

using tools::UniqueFd;
using tools::exit_code::kLauncher;

std::shared_ptr<ControlPage> make_page(const JobDirectory& directory, const Assignment& assignment) {
  try {
    return ControlPage::create(directory.control(), std::max(1, assignment.local_ranks), assignment.job_id);
  } catch (const Error& error) {
    directory.remove();
    // The advice of libcol behind its last semicolon is for programs that choose the file themselves.
    const std::string& message = error.message();
    throw LaunchError(kLauncher, message.substr(0, message.rfind(';')) + "; set TMPDIR to a directory with space");
  }
}

JobDirectory make_directory(const std::string& name, bool has_trace) {
  JobDirectory directory(name);
  directory.create();
  try {
    if (has_trace) directory.make_trace();
  } catch (...) {
    directory.remove();
    throw;
  }
  return directory;
}

double seconds(Attempt::Clock::duration time) {
  return std::chrono::duration<double>(time).count();
}

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

}  // namespace

Attempt::Attempt(const AttemptParts& parts)
    : parts_(parts),
      directory_(make_directory(parts.directory, !parts.spec.inspect.trace_path.empty())),
      page_(make_page(directory_, parts.assignment)),
      environment_(::environ, {.spec = parts.spec,
                               .assignment = parts.assignment,
                               .directory = directory_,
                               .host = parts.host,
                               .cpus = [] { return usable_cpus(); },
                               .gpus = parts.placement.gpus}),
      ends_(parts.events, [this](std::size_t rank) { reap(static_cast<int>(rank)); }),
      ending_({.grace = parts.spec.lifecycle.grace,
               .term_grace = parts.spec.lifecycle.term_grace,
               .keep_going = parts.spec.lifecycle.keep_going,
               .examine_failures = parts.spec.inspect.stacks_on_failure,
               .examine_time_limits = parts.spec.inspect.stacks_on_timeout}),
      // A drill asks whether a job recovers: the ranks that are started again are left alone.
      injector_(parts.assignment.restart == 0 ? parts.spec.injections : std::vector<Injection>(),
                parts.assignment.first_rank, parts.assignment.local_ranks),
      changed_signals_(changed_signals(hangup_is_ignored())),
      ranks_(static_cast<std::size_t>(parts.assignment.local_ranks)) {
  if (parts.spec.inspect.times && local_ranks() > 0) watch_.emplace(local_ranks(), parts.assignment.nodes > 1);
  if (parts.spec.environment.pmi) pmi_.emplace(parts.assignment, parts.events, [this](int rank) { on_pmi(rank); });
}

Attempt::~Attempt() {
  if (!removed_) directory_.remove();
}

bool Attempt::remove_directory() noexcept {
  removed_ = directory_.remove();
  return removed_;
}

// ---- starting

const Program& Attempt::program_of(int local_rank, std::size_t& index) const {
  index = 0;
  for (int first = 0; index + 1 < parts_.spec.programs.size(); ++index) {
    first += parts_.spec.programs[index].ranks;
    if (local_rank < first) break;
  }
  return parts_.spec.programs[index];
}

SpawnResult Attempt::spawn(int local_rank, const ChildDescriptors& descriptors) {
  std::size_t program = 0;
  std::vector<std::string> command = program_of(local_rank, program).command;
  std::string path = parts_.programs[program];
  const InspectSpec& inspect = parts_.spec.inspect;
  if (std::ranges::find(inspect.debug_ranks, global(local_rank)) != inspect.debug_ranks.end()) {
    command.front() = path;
    command.insert(command.begin(), inspect.debugger.begin(), inspect.debugger.end());
    path = resolve_program(command.front());
  }
  const std::vector<char*> arguments = pointers_to(command);
  const UniqueFd pmi = pmi_ ? pmi_->add_rank(local_rank) : UniqueFd();
  const std::vector<char*> environment = environment_.of_rank(local_rank, pmi.get());
  std::vector<int> kept = parts_.spec.keep_fds;
  if (pmi) kept.insert(std::ranges::upper_bound(kept, pmi.get()), pmi.get());
  const std::vector<CpuMask>& masks = parts_.placement.masks;
  ChildPlan plan{.path = path.c_str(),
                 .arguments = arguments.data(),
                 .environment = environment.data(),
                 .descriptors = descriptors,
                 .keep_fds = kept,
                 .pmi_fd = pmi.get(),
                 .open_files = parts_.open_files,
                 .changed_signals = changed_signals_};
  if (!masks.empty()) plan.cpus = &masks[static_cast<std::size_t>(local_rank)];
  const SpawnResult child = launch::spawn(plan);
  if (child.exec_error != 0) refuse_program(path, child.exec_error);
  return child;
}

bool Attempt::watch(int local_rank, pid_t pid) {
  Rank& rank = ranks_[static_cast<std::size_t>(local_rank)];
  rank.status.pid = pid;
  rank.started = Clock::now();
  rank.status.started = seconds(rank.started - parts_.job_began);
  rank.living = true;
  page_->record(local_rank).started(global(local_rank), pid);
  ++living_;
  rank.pidfd = UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  const int error = rank.pidfd ? 0 : errno;
  if (rank.pidfd) ends_.add_readable(rank.pidfd.get(), static_cast<std::size_t>(local_rank));
  injector_.on_started(global(local_rank), rank.started);
  errno = error;
  return has_event(local_rank);
}

// ---- while they run

int Attempt::rank_of(pid_t pid) const {
  for (int rank = 0; rank < local_ranks(); ++rank) {
    const Rank& one = ranks_[static_cast<std::size_t>(rank)];
    if (one.living && one.status.pid == pid) return rank;
  }
  return -1;
}

bool Attempt::has_event(int local_rank) const {
  return static_cast<bool>(ranks_[static_cast<std::size_t>(local_rank)].pidfd);
}

std::vector<int> Attempt::living_ranks() const {
  std::vector<int> living;
  for (int rank = 0; rank < local_ranks(); ++rank) {
    if (ranks_[static_cast<std::size_t>(rank)].living) living.push_back(global(rank));
  }
  return living;
}

std::vector<pid_t> Attempt::living_pids() const {
  std::vector<pid_t> pids;
  for (const Rank& rank : ranks_) {
    if (rank.living) pids.push_back(rank.status.pid);
  }
  return pids;
}

bool Attempt::all_exited() const {
  return std::ranges::all_of(ranks_, [](const Rank& rank) { return rank.status.exited; });
}

void Attempt::reap(int local_rank) {
  Rank& rank = ranks_[static_cast<std::size_t>(local_rank)];
  RankStatus& status = rank.status;
  rusage usage{};
  if (!rank.living || ::wait4(status.pid, &status.wait_status, WNOHANG, &usage) != status.pid) return;
  const Time now = Clock::now();
  rank.pidfd.reset();
  rank.living = false;
  // An exit code has eight bits; an abort is no good end.
  if (rank.exit_code && WIFSIGNALED(status.wait_status))
    status.wait_status = W_EXITCODE(std::max(1, *rank.exit_code & 0xff), 0);
  page_->record(local_rank).ended(status.wait_status);
  --living_;
  injector_.on_ended(global(local_rank));
  status.exited = true;
  status.seconds = seconds(now - rank.started);
  status.cpu_seconds = seconds(usage.ru_utime) + seconds(usage.ru_stime);
  status.peak_rss_bytes = static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
  parts_.on_end(local_rank, is_failure(rank, local_rank, now));
  // After a decision to end the job: its cause says more than a rank finds out by itself.
  page_->ring();
}

// Tells `ending_` if it is one.
bool Attempt::is_failure(Rank& rank, int local_rank, Time now) {
  RankStatus& status = rank.status;
  const bool is_first = !ending_.is_ending();
  if (status.wait_status == 0) {
    const bool others_remain = !all_exited();
    status.walked_out = is_first && others_remain && uses_col(local_rank);
    if (!first_good_end_ && others_remain) first_good_end_ = now;
    return false;
  }

  const std::optional<RankError> said = read_error_file(directory_.error_file(local_rank));
  status.collateral = said && said->is_collateral();
  const int by_signal = WIFSIGNALED(status.wait_status) ? WTERMSIG(status.wait_status) : 0;
  status.out_of_memory = by_signal == SIGKILL && !status.needed_kill && memory_.claim();
  if (is_first) remember_calls();
  ending_.on_failure({global(local_rank), status.collateral, by_signal, is_first && others_may_notice()}, now);
  if (is_first && !status.collateral && ending_.is_ending()) {
    abort({ErrorCode::peer_lost, global(local_rank),
           fmt::format("rank {} {}; its own output says why", global(local_rank),
                       describe_wait_status(status.wait_status))});
  }
  return true;
}

void Attempt::on_pmi(int local_rank) {
  if (const auto code = pmi_->take_abort(local_rank)) end_with(local_rank, *code);
  if (const auto entries = pmi_->take_barrier()) parts_.on_all_in_barrier(*entries);
}

void Attempt::signal_group(int local_rank, int signal) {
  const Rank& rank = ranks_[static_cast<std::size_t>(local_rank)];
  // Not reaped yet, so neither the pid nor the group can belong to another process.
  if (rank.living) ::kill(-rank.status.pid, signal);
}

void Attempt::end_with(int local_rank, int exit_code) {
  ranks_[static_cast<std::size_t>(local_rank)].exit_code = exit_code;
  signal_group(local_rank, SIGKILL);
}

void Attempt::signal_all(int signal) {
  for (Rank& rank : ranks_) {
    if (!rank.living) continue;
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

void Attempt::notify_all(int signal) {
  for (const Rank& rank : ranks_) {
    if (rank.living) ::kill(rank.status.pid, signal);
  }
}

void Attempt::set_stopped(bool stopped) {
  // Not SIGTSTP: it does nothing in the ranks' session, which has no shell.
  for (int rank = 0; rank < local_ranks(); ++rank) signal_group(rank, stopped ? SIGSTOP : SIGCONT);
}

bool Attempt::uses_col(int local_rank) const {
  const RankActivity::State state = page_->record(local_rank).read().state;
  return state != RankActivity::State::absent && state != RankActivity::State::finished;
}

bool Attempt::others_may_notice() const {
  for (int rank = 0; rank < local_ranks(); ++rank) {
    if (ranks_[static_cast<std::size_t>(rank)].living && uses_col(rank)) return true;
  }
  return false;
}

}  // namespace col::launch
