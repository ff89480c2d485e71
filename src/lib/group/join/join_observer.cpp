#include "group/join/join_observer.hpp"

#include <sys/wait.h>

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include <col/error.hpp>

#include "core/duration.hpp"
#include "core/job/process.hpp"
#include "core/log.hpp"
#include "group/diagnosis/diagnosis.hpp"
#include "group/diagnosis/failure.hpp"
#include "store/base/call_limit.hpp"

namespace col::group {
namespace {

using State = RankActivity::State;

// Processes that are looked at in one go, at the cost of a file each: of more ranks, each begins with others.
constexpr int kLooks = 32;

std::string how_it_ended(int wait_status) {
  return WIFSIGNALED(wait_status) ? fmt::format("was killed by signal {}", WTERMSIG(wait_status))
                                  : fmt::format("ended with exit code {}", WEXITSTATUS(wait_status));
}

}  // namespace

// Before the ranks have met, two kinds of groups are known to need all ranks: that of the whole job, and one whose
// members somebody has listed.
bool JoinObserver::is_whole_job() const {
  return request_.spec.world_size == request_.context.world_size;
}

bool JoinObserver::belongs(int global_rank) const {
  if (peers_.empty() && request_.members.empty()) return is_whole_job();
  return group_rank(global_rank) >= 0;
}

int JoinObserver::group_rank(int global_rank) const {
  if (!peers_.empty()) {
    for (const PeerInfo& peer : peers_) {
      if (peer.global_rank == global_rank) return peer.rank;
    }
    return -1;
  }
  const auto& members = request_.members;
  const auto found = std::find(members.begin(), members.end(), global_rank);
  if (found != members.end()) return static_cast<int>(found - members.begin());
  // Numbered as the job's, as far as this rank can tell.
  const bool as_in_job = members.empty() && is_whole_job() && request_.spec.rank == request_.context.rank;
  return as_in_job ? global_rank : -1;
}

std::string JoinObserver::name(int global_rank) const {
  const int rank = group_rank(global_rank);
  return rank >= 0 ? fmt::format("rank {}", rank) : fmt::format("rank {} of the job", global_rank);
}

// Costs one look at memory, except for processes that have ended. A process that is `in_job` may have ended because of
// one that is not.
void JoinObserver::look_for_end(const RankRecord& record, bool in_job) const {
  if (!record.has_ended()) return;
  const auto process = record.process();
  if (!belongs(process->rank)) return;
  // A program goes on if only the launcher's own process for it has ended.
  const RankActivity activity = record.read();
  if (in_job != (activity.state != State::absent && activity.state != State::finished)) return;
  if (activity.state != State::absent && core::ProcessId(activity.pid, activity.pid_start).alive()) return;
  throw Error(ErrorCode::peer_lost,
              fmt::format("{} (pid {}) {}{} before it joined group '{}'; every rank must join it", name(process->rank),
                          process->pid, how_it_ended(*process->wait_status),
                          activity.state == State::finished ? ", after col::finalize()," : "", request_.spec.name),
              request_.spec.name, group_rank(process->rank));
}

// Without a launcher, nobody else would notice.
void JoinObserver::look_for_death(const RankRecord& record) const {
  if (!record.lost()) return;
  const RankActivity activity = record.read();
  if (!belongs(activity.rank)) return;
  throw Error(ErrorCode::peer_lost,
              fmt::format("{} (pid {}) died before the group was made; its own output says why", name(activity.rank),
                          activity.pid),
              request_.spec.name, group_rank(activity.rank));
}

void JoinObserver::look_for_deaths() const {
  const auto& control = request_.context.control;
  for (int i = 0; control && i < control->local_ranks(); ++i) look_for_death(control->record(i));
}

std::optional<JoinObserver::Stopped> JoinObserver::stopped(const RankRecord& record) const {
  const RankActivity activity = record.read();
  Stopped one{activity.rank, activity.pid};
  bool stands_still = false;
  if (activity.state != State::absent) {
    stands_still = core::ProcessId(activity.pid, activity.pid_start).stopped();
  } else if (const auto process = record.process()) {
    one = {process->rank, process->pid};
    stands_still = process->stopped;
  }
  if (!stands_still || !belongs(one.global_rank)) return std::nullopt;
  return one;
}

// Decides which rank the ranks that wait for this one elsewhere should name: one that has not joined the job;
// otherwise, among those that do not wait, the one that has been silent for the longest time.
void JoinObserver::say_who_holds_up() {
  held_up_by_ = -1;
  std::uint64_t since_ns = std::numeric_limits<std::uint64_t>::max();
  const auto& control = request_.context.control;
  for (int i = 0; i < control->local_ranks(); ++i) {
    const RankRecord& record = control->record(i);
    const RankActivity activity = record.read();
    int rank = activity.rank;
    if (activity.state == State::absent) rank = record.started_as();
    const bool waits = activity.state == State::waiting || activity.state == State::finished;
    if (rank < 0 || waits || !belongs(rank) || rank == request_.context.rank || activity.since_ns >= since_ns) continue;
    held_up_by_ = rank;
    since_ns = activity.since_ns;  // 0 while it is absent
  }
  if (request_.record != nullptr) request_.record->held_up_by(held_up_by_);
}

void JoinObserver::on_news(std::uint32_t /*news*/) {
  if (request_.look_aside) request_.look_aside();
}

void JoinObserver::tell(int held_up_by) {
  if (std::exchange(told_, held_up_by) != held_up_by) request_.tell(held_up_by);
}

void JoinObserver::withdraw() {
  tell(kNobody);
}

// One that has failed in the group from which this one is made does not come. A store that does not answer is not asked
// again.
void JoinObserver::look_for_failure() {
  if (request_.relatives == nullptr || request_.relatives->origin == nullptr || is_store_mute_) return;
  std::optional<Error> failure;
  try {
    const store::CallLimit limit(kStoreTime);
    failure = failure_in(*request_.relatives->origin);
  } catch (const Error&) {
    is_store_mute_ = true;
  }
  if (!failure) return;
  throw Error(failure->code(),
              fmt::format("not all ranks come, after an error of group '{}': {}", failure->group(), failure->message()),
              request_.spec.name, group_rank(failure->world_rank()), failure->world_rank());
}

bool JoinObserver::on_slow(Duration waited) {
  if (request_.look_aside) request_.look_aside();
  look_for_failure();
  if (!all_have_come_) look_at_records();
  if (waited >= kHoldupTime) tell(held_up_by_ >= 0 ? held_up_by_ : kSomebody);
  return false;
}

void JoinObserver::look_at_records() {
  const auto& control = request_.context.control;
  if (!control) return;
  const int ranks = control->local_ranks();
  for (const bool in_job : {false, true}) {
    for (int i = 0; i < ranks; ++i) look_for_end(control->record(i), in_job);
  }
  for (int looks = 0; looks < std::min(ranks, kLooks); ++looks) {
    const RankRecord& record = control->record(next_++ % ranks);
    look_for_death(record);
    const auto one = stopped(record);
    if (!one || !warned_of_.insert(one->pid).second) continue;
    core::log::warn(
        "group '{}': waits for {} (pid {}), which stands still: a signal (SIGSTOP, ^Z) or a debugger has "
        "stopped it",
        request_.spec.name, name(one->global_rank), one->pid);
  }
  say_who_holds_up();
}

void JoinObserver::on_timeout(Duration budget) {
  look_for_failure();
  const auto& control = request_.context.control;
  for (int i = 0; control && i < control->local_ranks(); ++i) {
    const auto one = stopped(control->record(i));
    if (!one) continue;
    held_up_by_ = one->global_rank;
    throw Error(ErrorCode::timeout,
                fmt::format("making the group timed out after {}: {} (pid {}) stands still: a signal (SIGSTOP, ^Z) or "
                            "a debugger has stopped it; let it go on, or raise COL_TIMEOUT",
                            core::format_duration(budget), name(one->global_rank), one->pid),
                request_.spec.name, group_rank(one->global_rank));
  }
  // Else the wait says what it waited for.
}

}  // namespace col::group
