#include "launch/supervise/attempt.hpp"

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
#include "launch/report/rank_words.hpp"

namespace col::launch {
namespace {

using tools::UniqueFd;
using tools::exit_code::kLauncher;

std::shared_ptr<ControlPage> make_page(const JobDirectory& directory, int places, const std::string& job_id) {
  try {
    return ControlPage::create(directory.control(), std::max(1, places), job_id);
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
      page_(make_page(directory_, parts.assignment.local_ranks + parts.spec.lifecycle.spares, parts.assignment.job_id)),
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
      places_({.ranks = parts.assignment.local_ranks,
               .spares = parts.spec.lifecycle.spares,
               .min_ranks = parts.spec.lifecycle.min_ranks,
               .max_restarts = parts.spec.lifecycle.max_restarts}),
      // A drill asks whether a job recovers: the ranks that are started again are left alone.
      injector_(parts.assignment.restart == 0 ? parts.spec.injections : std::vector<Injection>(),
                parts.assignment.first_rank, parts.assignment.local_ranks),
      changed_signals_(changed_signals(hangup_is_ignored())),
      ranks_(static_cast<std::size_t>(parts.assignment.local_ranks + parts.spec.lifecycle.spares)) {
  if (parts.spec.inspect.times && local_ranks() > 0)
    watch_.emplace(static_cast<int>(ranks_.size()), parts.assignment.nodes > 1);
  if (parts.spec.lifecycle.has_epochs())
    epochs_.emplace(parts.events, directory_.epochs(), parts.job_began,
                    [this](const EpochStory& epoch) { on_epoch(epoch); });
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
  const UniqueFd pmi = pmi_ && !joins(local_rank) ? pmi_->add_rank(local_rank) : UniqueFd();
  const std::vector<char*> environment = environment_.of_rank(local_rank, pmi.get(), joins(local_rank));
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
  if (static_cast<std::size_t>(local_rank) < masks.size()) plan.cpus = &masks[static_cast<std::size_t>(local_rank)];
  const SpawnResult child = launch::spawn(plan);
  if (child.exec_error != 0) refuse_program(path, child.exec_error);
  return child;
}

bool Attempt::watch(int local_rank, pid_t pid) {
  Rank& rank = ranks_[static_cast<std::size_t>(local_rank)];
  if (std::exchange(rank.was_in, false)) {
    rank.before = rank.status;
    rank.epoch_before = rank.epoch;
  }
  rank.status = {.pid = pid};
  rank.epoch.reset();
  rank.started = Clock::now();
  rank.status.started = seconds(rank.started - parts_.job_began);
  rank.living = true;
  page_->record(local_rank).started(global(local_rank), pid);
  ++living_;
  rank.pidfd = UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  const int error = rank.pidfd ? 0 : errno;
  if (rank.pidfd) ends_.add_readable(rank.pidfd.get(), static_cast<std::size_t>(local_rank));
  if (!joins(local_rank)) injector_.on_started(global(local_rank), rank.started);
  errno = error;
  return has_event(local_rank);
}

// ---- while they run

int Attempt::rank_of(pid_t pid) const {
  const auto found =
      std::ranges::find_if(ranks_, [pid](const Rank& one) { return one.living && one.status.pid == pid; });
  return found == ranks_.end() ? -1 : static_cast<int>(found - ranks_.begin());
}

bool Attempt::has_event(int local_rank) const {
  return static_cast<bool>(ranks_[static_cast<std::size_t>(local_rank)].pidfd);
}

std::vector<int> Attempt::living_ranks() const {
  std::vector<int> living;
  for (std::size_t place = 0; place < ranks_.size(); ++place) {
    const auto index = static_cast<int>(place);
    if (ranks_[place].living && places_.is_in(index)) living.push_back(global(index));
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

RankNames Attempt::names(int place) const {
  RankNames names = names_of(parts_.assignment, place, parts_.host);
  names.restart += places_.restarts(place);
  return names;
}

// Spares that sleep are in the group when their records say so.
void Attempt::note_taken() {
  for (std::size_t place = 0; place < ranks_.size(); ++place) {
    const RankRecord& record = page_->record(static_cast<int>(place));
    if (ranks_[place].living) ranks_[place].epoch = record.epoch();
    if (ranks_[place].epoch) places_.on_taken(static_cast<int>(place));
  }
}

// It was in the job's group, and has gone from it before its end.
bool Attempt::has_left(int place) const {
  const RankRecord& record = page_->record(place);
  return !record.epoch() && std::ranges::count(record.groups_ever(), "default", &RecordedGroup::name) > 0;
}

// It lives, and does not know yet that there is that epoch.
bool Attempt::is_behind(int place, std::uint64_t epoch) const {
  const bool lives = ranks_[static_cast<std::size_t>(place)].living;
  return lives && page_->record(place).epoch().value_or(epoch) < epoch;
}

void Attempt::on_epoch(const EpochStory& epoch) {
  last_epoch_ = std::max(last_epoch_, epoch.line.epoch);
  note_taken();
  for (std::size_t place = 0; place < ranks_.size(); ++place) {
    const auto index = static_cast<int>(place);
    if (std::ranges::count(epoch.line.left_out, global(index)) == 0 || !is_behind(index, epoch.line.epoch)) continue;
    places_.on_left_out(index, Clock::now() + parts_.spec.lifecycle.grace);
  }
}

std::vector<int> Attempt::end_left_out(Time now) {
  std::vector<int> late = places_.late(now);
  std::erase_if(late, [this](int place) { return !is_behind(place, last_epoch_); });
  for (const int place : late) {
    RankStatus& status = ranks_[static_cast<std::size_t>(place)].status;
    status.told_to_end = status.needed_kill = true;
    signal_group(place, SIGKILL);
  }
  return late;
}

const std::vector<EpochStory>& Attempt::epochs() {
  static const std::vector<EpochStory> kNone;
  if (!epochs_) return kNone;
  epochs_->read();
  return epochs_->epochs();
}

bool Attempt::end_sleepers(Time now) {
  if (living_ == 0 || !places_.is_over() || ending_.phase() != Ending::Phase::running) return false;
  note_taken();
  if (!places_.is_over()) return false;
  ending_.on_over(now);
  return true;
}

bool Attempt::never_renewed() const {
  const auto is_renewed = [](const Rank& rank) { return std::max(rank.epoch, rank.epoch_before).value_or(0) > 0; };
  return places_.count(Places::Standing::lost) > 0 && std::ranges::none_of(ranks_, is_renewed);
}

void Attempt::reap(int local_rank) {
  Rank& rank = ranks_[static_cast<std::size_t>(local_rank)];
  RankStatus& status = rank.status;
  rusage usage{};
  if (!rank.living || ::wait4(status.pid, &status.wait_status, WNOHANG, &usage) != status.pid) return;
  const Time now = Clock::now();
  note_taken();
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
  rank.was_in = places_.is_in(local_rank);
  const bool is_left_out = rank.was_in && ((status.told_to_end && is_first) || has_left(local_rank));
  places_.on_ended(local_rank,
                   is_left_out               ? Places::End::after_leaving
                   : status.wait_status == 0 ? Places::End::well
                                             : Places::End::failed,
                   now);
  if (!rank.was_in) return false;
  if (status.wait_status == 0) {
    const bool others_remain = !places_.is_over();
    status.walked_out = is_first && others_remain && uses_col(local_rank);
    if (!first_good_end_ && others_remain && !is_left_out) first_good_end_ = now;
    return false;
  }

  const std::optional<RankError> said = read_error_file(directory_.error_file(local_rank));
  status.collateral = said && said->is_collateral();
  const int by_signal = WIFSIGNALED(status.wait_status) ? WTERMSIG(status.wait_status) : 0;
  status.out_of_memory = by_signal == SIGKILL && !status.needed_kill && memory_.claim();
  // One that is lost is not the end where others go on in epochs.
  if (is_first && (!epochs_ || places_.are_too_few())) remember_calls();
  ending_.on_failure({global(local_rank), status.collateral, by_signal, is_first && others_may_notice()}, now);
  if (places_.are_too_few()) ending_.on_failure_elsewhere(others_may_notice(), now);
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
  for (std::size_t place = 0; place < ranks_.size(); ++place)
    signal_group(static_cast<int>(place), stopped ? SIGSTOP : SIGCONT);
}

bool Attempt::uses_col(int local_rank) const {
  const RankActivity::State state = page_->record(local_rank).read().state;
  return state != RankActivity::State::absent && state != RankActivity::State::finished;
}

bool Attempt::others_may_notice() const {
  for (std::size_t place = 0; place < ranks_.size(); ++place) {
    const auto local_rank = static_cast<int>(place);
    if (ranks_[place].living && places_.is_in(local_rank) && uses_col(local_rank)) return true;
  }
  return false;
}

}  // namespace col::launch
