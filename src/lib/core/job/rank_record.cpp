// A rank's record: the words of one operation under a sequence lock, the state and the holder in single words beside
// it.
//
// Writer: version to odd; words (release); version to even (release).
// Reader: version (acquire); words (acquire); version again.
// A reader that sees any word of a later write also sees, because that word was released after it, the odd version
// before it, and tries again. So two equal even versions mean that all words between are of one write.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>

#include <fmt/format.h>

#include <col/job.hpp>

#include "core/clock/clock.hpp"
#include "core/clock/this_process.hpp"
#include "core/job/page.hpp"
#include "core/job/process.hpp"
#include "core/job/record_words.hpp"

namespace col {

namespace {

using State = RankActivity::State;
using core::coarse_clock_ns;
using core::lower_half;
using core::pack;
using core::upper_half;

State state_of(std::uint64_t state_and_rank) noexcept {
  return static_cast<State>(upper_half(state_and_rank));
}

int rank_of(std::uint64_t state_and_rank) noexcept {
  return state_of(state_and_rank) == State::absent ? -1 : static_cast<int>(lower_half(state_and_rank));
}

// How long a reader waits for a writer that is in the middle.
constexpr Duration kReadPatience = std::chrono::milliseconds(20);
constexpr int kSpins = 100;
// Hundreds of ranks that wait look after one another: each trusts what another process has seen so recently.
constexpr std::uint64_t kTrustMs = 50;
constexpr int kPidBits = 22;  // the kernel's most

// The writer's side of the sequence lock. Another thread of this process may be inside; a process that held the record
// before may have been killed inside. So the wait is short, and then the lock is taken over: at worst a reader sees one
// mixed line of a report.
class WriteLock {
 public:
  explicit WriteLock(core::Word& version) noexcept : version_(version) {
    std::uint64_t seen = version_.load(std::memory_order_relaxed);
    for (int attempt = 0; attempt < kSpins; ++attempt) {
      // acquire: pairs with the release of the thread that wrote before. The words after it are released, so that none
      // can be seen before the odd version.
      if (seen % 2 == 0 &&
          version_.compare_exchange_weak(seen, seen + 1, std::memory_order_acquire, std::memory_order_relaxed)) {
        odd_ = seen + 1;
        return;
      }
      core::yield();
      seen = version_.load(std::memory_order_relaxed);
    }
    odd_ = (seen | 1) + 2;  // not the number of the stuck writer, which may go on later
    version_.store(odd_, std::memory_order_relaxed);
  }
  ~WriteLock() {
    // Not a plain store: somebody may have taken over, and the version must not go back. release: pairs with read().
    std::uint64_t mine = odd_;
    version_.compare_exchange_strong(mine, odd_ + 1, std::memory_order_release, std::memory_order_relaxed);
  }
  WriteLock(const WriteLock&) = delete;
  WriteLock& operator=(const WriteLock&) = delete;

 private:
  core::Word& version_;
  std::uint64_t odd_ = 0;
};

}  // namespace

void RankRecord::join(int rank) {
  const auto self = core::ProcessId::self();
  std::uint64_t held = layout_->process.load(std::memory_order_acquire);
  do {
    const auto holder = core::ProcessId::from_word(held);
    const bool finished = state_of(layout_->state_and_rank.load(std::memory_order_acquire)) == State::finished;
    if (!(holder == self) && !finished && holder.alive()) {
      if (const RankActivity other = read(); other.state != State::absent && other.rank != rank)
        throw Error(
            ErrorCode::already_initialized,
            fmt::format("ranks {} and {} (process {}) have one place on this host: they were told the same local "
                        "rank; give each rank of a host another COL_LOCAL_RANK, or LOCAL_RANK, from 0 on",
                        rank, other.rank, holder.pid()),
            {}, rank);
      throw Error(
          ErrorCode::already_initialized,
          fmt::format("rank {} was started twice: process {} already is that rank; end it first, or give this one "
                      "another COL_RANK and COL_LOCAL_RANK",
                      rank, holder.pid()),
          {}, rank);
    }
    // acq_rel: what the holder before wrote comes before what this one will write.
  } while (!layout_->process.compare_exchange_strong(held, self.word(), std::memory_order_acq_rel,
                                                     std::memory_order_acquire));
  const WriteLock lock(layout_->version);
  if (!(core::ProcessId::from_word(held) == self)) {
    clear_history();
    layout_->epoch.store(0, std::memory_order_release);
  }
  layout_->entries.store(recorder_->entries.load(std::memory_order_relaxed), std::memory_order_release);
  layout_->sequence.store(0, std::memory_order_release);
  layout_->fingerprint.store(0, std::memory_order_release);
  layout_->step_and_peer.store(pack(~0u, ~0u), std::memory_order_release);
  layout_->since_ns.store(coarse_clock_ns(), std::memory_order_release);
  layout_->held_up_by.store(0, std::memory_order_release);
  layout_->group.store({});
  layout_->op.store({});
  layout_->place.clear();
  store_details({});
  layout_->state_and_rank.store(pack(static_cast<std::uint32_t>(State::joined), static_cast<std::uint32_t>(rank)),
                                std::memory_order_release);
}

void RankRecord::begin(std::string_view group, std::uint64_t sequence, std::string_view op, std::uint64_t fingerprint,
                       const CallDetails& details) noexcept {
  const WriteLock lock(layout_->version);
  layout_->entries.store(recorder_->entries.load(std::memory_order_relaxed), std::memory_order_release);
  layout_->sequence.store(sequence, std::memory_order_release);
  layout_->fingerprint.store(fingerprint, std::memory_order_release);
  layout_->step_and_peer.store(pack(~0u, ~0u), std::memory_order_release);
  layout_->since_ns.store(coarse_clock_ns(), std::memory_order_release);
  layout_->held_up_by.store(0, std::memory_order_release);
  layout_->group.store(group);
  layout_->op.store(op);
  layout_->place.clear();
  store_details(details);
  set_state(State::running);
}

void RankRecord::store_details(const CallDetails& details) noexcept {
  layout_->partner_and_tag.store(core::pack_partner(details), std::memory_order_release);
  layout_->elements.store(core::pack_elements(details), std::memory_order_release);
  layout_->rounds_and_method.store(pack(~0u, core::pack_method(details)), std::memory_order_release);
  layout_->bytes_done.store(0, std::memory_order_release);
}

void RankRecord::place(std::string_view where) noexcept {
  constexpr std::size_t kMost = sizeof layout_->place - 1;
  const WriteLock lock(layout_->version);
  layout_->place.store(where.substr(where.size() - std::min(where.size(), kMost)));
}

void RankRecord::waiting(std::int32_t step, std::int32_t peer, const CallProgress& progress) noexcept {
  const WriteLock lock(layout_->version);
  const State state = state_of(layout_->state_and_rank.load(std::memory_order_relaxed));
  // As in end(): a thread that is late must not undo finish().
  if (state == State::finished) return;
  layout_->step_and_peer.store(pack(static_cast<std::uint32_t>(step), static_cast<std::uint32_t>(peer)),
                               std::memory_order_release);
  if (progress.rounds >= 0) {
    const std::uint64_t old = layout_->rounds_and_method.load(std::memory_order_relaxed);
    layout_->rounds_and_method.store(pack(core::pack_rounds(progress), lower_half(old)), std::memory_order_release);
    layout_->bytes_done.store(progress.bytes, std::memory_order_release);
  }
  // Said again at every look of a long wait: it still began at the first.
  if (state == State::waiting) return;
  take_over_ring();
  layout_->since_ns.store(coarse_clock_ns(), std::memory_order_release);
  layout_->held_up_by.store(0, std::memory_order_release);
  set_state(State::waiting);
}

void RankRecord::held_up_by(int global_rank) noexcept {
  const WriteLock lock(layout_->version);
  layout_->held_up_by.store(static_cast<std::uint64_t>(global_rank + 1), std::memory_order_release);
}

void RankRecord::resume() noexcept {
  // relaxed: this process's own word.
  if (state_of(layout_->state_and_rank.load(std::memory_order_relaxed)) != State::waiting) return;
  const WriteLock lock(layout_->version);
  if (state_of(layout_->state_and_rank.load(std::memory_order_relaxed)) != State::waiting) return;
  layout_->since_ns.store(coarse_clock_ns(), std::memory_order_release);
  layout_->held_up_by.store(0, std::memory_order_release);
  set_state(State::running);
}

void RankRecord::fail(int global_rank) noexcept {
  const WriteLock lock(layout_->version);
  if (global_rank >= 0)
    layout_->held_up_by.store(static_cast<std::uint64_t>(global_rank + 1), std::memory_order_release);
  if (state_of(layout_->state_and_rank.load(std::memory_order_relaxed)) != State::waiting) return;
  layout_->since_ns.store(coarse_clock_ns(), std::memory_order_release);
  set_state(State::running);
}

// One word, and no lock: it may come often, and readers make nothing of its order with the others.
void RankRecord::touch() noexcept {
  layout_->since_ns.store(coarse_clock_ns(), std::memory_order_relaxed);
}

void RankRecord::end(std::string_view group) noexcept {
  const WriteLock lock(layout_->version);
  if (!group.empty() && !layout_->group.holds(group)) return;
  // A thread that is late must not undo finish().
  const State state = state_of(layout_->state_and_rank.load(std::memory_order_relaxed));
  if (state != State::running && state != State::waiting) return;
  layout_->step_and_peer.store(pack(~0u, ~0u), std::memory_order_release);
  layout_->since_ns.store(coarse_clock_ns(), std::memory_order_release);
  set_state(State::joined);
}

void RankRecord::finish() noexcept {
  const WriteLock lock(layout_->version);
  layout_->since_ns.store(coarse_clock_ns(), std::memory_order_release);
  set_state(State::finished);
}

void RankRecord::set_state(RankActivity::State state) noexcept {
  const std::uint64_t old = layout_->state_and_rank.load(std::memory_order_relaxed);
  layout_->state_and_rank.store(pack(static_cast<std::uint32_t>(state), lower_half(old)), std::memory_order_release);
}

RankActivity RankRecord::read() const {
  RankActivity activity;
  const auto read_identity = [&] {
    const std::uint64_t state_and_rank = layout_->state_and_rank.load(std::memory_order_acquire);
    activity.state = state_of(state_and_rank);
    activity.rank = rank_of(state_and_rank);
    const auto process = core::ProcessId::from_word(layout_->process.load(std::memory_order_acquire));
    activity.pid = process.pid();
    activity.pid_start = process.start();
  };
  const Deadline patience = Deadline::after(kReadPatience);
  int attempt = 0;
  do {
    const std::uint64_t before = layout_->version.load(std::memory_order_acquire);  // pairs with ~WriteLock
    if (before % 2 == 0) {
      read_identity();
      activity.sequence = layout_->sequence.load(std::memory_order_acquire);
      activity.fingerprint = layout_->fingerprint.load(std::memory_order_acquire);
      const std::uint64_t step_and_peer = layout_->step_and_peer.load(std::memory_order_acquire);
      activity.step = static_cast<std::int32_t>(upper_half(step_and_peer));
      activity.peer = static_cast<std::int32_t>(lower_half(step_and_peer));
      activity.since_ns = layout_->since_ns.load(std::memory_order_acquire);
      activity.held_up_by = static_cast<std::int32_t>(layout_->held_up_by.load(std::memory_order_acquire)) - 1;
      activity.group = layout_->group.load();
      activity.op = layout_->op.load();
      const std::uint64_t partner_and_tag = layout_->partner_and_tag.load(std::memory_order_acquire);
      const std::uint64_t method = layout_->rounds_and_method.load(std::memory_order_acquire);
      activity.progress = core::unpack_rounds(upper_half(method), layout_->bytes_done.load(std::memory_order_acquire));
      activity.place = layout_->place.load();
      activity.details =
          core::unpack(layout_->elements.load(std::memory_order_acquire), partner_and_tag, lower_half(method));
      const bool is_whole = activity.state == State::finished || read_ring(activity);
      // relaxed: the acquires above keep it after them.
      if (is_whole && layout_->version.load(std::memory_order_relaxed) == before) {
        activity.names = names_of(activity.details);
        return activity;
      }
    }
    if (++attempt > kSpins)
      core::sleep_for(std::chrono::microseconds(50));
    else
      core::yield();
  } while (!patience.expired());
  activity = RankActivity{};
  read_identity();
  return activity;
}

int RankRecord::rank() const noexcept {
  return rank_of(layout_->state_and_rank.load(std::memory_order_acquire));
}

std::int64_t RankRecord::holder() const noexcept {
  return core::ProcessId::from_word(layout_->process.load(std::memory_order_acquire)).pid();
}

void RankRecord::enter_epoch(std::uint64_t epoch) noexcept {
  layout_->epoch.store(epoch + 1, std::memory_order_release);
}

void RankRecord::leave_epochs() noexcept {
  layout_->epoch.store(0, std::memory_order_release);
}

std::optional<std::uint64_t> RankRecord::epoch() const noexcept {
  const std::uint64_t word = layout_->epoch.load(std::memory_order_acquire);
  return word > 0 ? std::optional(word - 1) : std::nullopt;
}

bool RankRecord::lost() const {
  // The holder is looked up twice, because between a look at its state and a look at its life it may finish and leave
  // in good order. Once it is gone, its last word stands.
  const auto held = [this] {
    const State state = state_of(layout_->state_and_rank.load(std::memory_order_acquire));
    const bool active = state == State::joined || state == State::running || state == State::waiting;
    return active ? core::ProcessId::from_word(layout_->process.load(std::memory_order_acquire)) : core::ProcessId();
  };
  const core::ProcessId holder = held();
  if (holder.nobody()) return false;
  // The launcher has seen it end.
  if (has_ended() &&
      core::lower_half(layout_->started.load(std::memory_order_acquire)) == static_cast<std::uint32_t>(holder.pid()))
    return held() == holder;
  // relaxed: the word says all by itself.
  const std::uint64_t seen = layout_->seen_alive.load(std::memory_order_relaxed),
                      now_ms = coarse_clock_ns() / 1'000'000;
  const std::uint64_t own = static_cast<std::uint64_t>(core::own_pid()) & ((std::uint64_t{1} << kPidBits) - 1);
  const bool by_another = (seen ^ own) << (64 - kPidBits) != 0;
  if (by_another && now_ms - (seen >> kPidBits) < kTrustMs) return false;
  if (holder.alive()) {
    layout_->seen_alive.store(now_ms << kPidBits | own, std::memory_order_relaxed);
    return false;
  }
  return held() == holder;
}

void RankRecord::doubt() noexcept {
  layout_->seen_alive.store(0, std::memory_order_release);
}

}  // namespace col
