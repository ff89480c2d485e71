#include "backend/shm/native/kernel_trials.hpp"

#include <algorithm>
#include <array>
#include <bit>

namespace col::shm_backend {
namespace {

constexpr KernelTrials::Turn kKernel{.by_kernel = true}, kTimedKernel{.by_kernel = true, .is_timed = true},
    kSlotsTurn{.by_kernel = false}, kTimedSlots{.by_kernel = false, .is_timed = true};
// The calls of a trial. The best time of each way counts. A way is timed after calls that went the same way, as the
// other one leaves other caches behind, above all for slots; and the kernel early and late, as the first calls of a
// program find cold memory.
constexpr std::array kTrial = {kKernel,     kTimedKernel, kSlotsTurn, kSlotsTurn,  kSlotsTurn,
                               kTimedSlots, kTimedSlots,  kKernel,    kTimedKernel};
static_assert(kTrial.size() < KernelTrials::kFirstRound);

}  // namespace

KernelTrials::Turn KernelTrials::next(const KernelCall& call) {
  const std::size_t blocks = is_of_blocks(call.shape) ? static_cast<std::size_t>(size_) : 1;
  const std::size_t before = before_ / (blocks * std::bit_floor(call.bytes));
  kind_ = &kinds_.try_emplace({call.shape, std::bit_width(call.bytes)}, before).first->second;
  if (kind_->before_trials != 0) {
    --kind_->before_trials;
    return {.by_kernel = false};
  }
  if (kind_->call == kind_->round) kind_->call = 0;
  const std::uint32_t number = kind_->call++;
  if (number == 0) kind_->best = {};
  if (number < kTrial.size()) return kTrial[number];
  return {.by_kernel = kind_->by_kernel, .decides = number == kTrial.size()};
}

void KernelTrials::took(WayTimes times) noexcept {
  WayTimes& best = kind_->best;
  best.kernel = std::min(best.kernel, times.kernel);
  best.slots = std::min(best.slots, times.slots);
  best.meeting = std::min(best.meeting, times.meeting);
}

bool KernelTrials::decide(std::span<const Presence> all) noexcept {
  // A call takes as long as its slowest rank. That one waits for nobody in the last meeting, and the kernel's way has
  // had another meeting before.
  WayTimes call{.kernel = 0, .meeting = WayTimes::kUnknown, .slots = 0};
  for (const Presence& each : all) {
    call.kernel = std::max(call.kernel, each.times.kernel);
    call.meeting = std::min(call.meeting, each.times.meeting);
    call.slots = std::max(call.slots, each.times.slots);
  }
  if (call.kernel == WayTimes::kUnknown || call.slots == WayTimes::kUnknown) return kind_->by_kernel;
  const bool is_faster = std::uint64_t{call.kernel} + call.meeting < call.slots;
  const bool is_again = kind_->is_decided && is_faster == kind_->by_kernel;
  kind_->round = is_again ? std::min(2 * kind_->round, kLongestRound) : kFirstRound;
  // On a machine where the kernel copies slowly, trials are what they cost, and nothing else.
  if (std::uint64_t{2} * call.kernel > std::uint64_t{3} * call.slots) kind_->round = kLongestRound;
  kind_->by_kernel = is_faster;
  kind_->is_decided = true;
  return is_faster;
}

}  // namespace col::shm_backend
