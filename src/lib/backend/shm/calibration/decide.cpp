#include "backend/shm/calibration/decide.hpp"

#include <algorithm>
#include <bit>
#include <vector>

#include <fmt/format.h>

#include "backend/shm/calibration/processors_nearby.hpp"
#include "backend/shm/segment/layout.hpp"

namespace col::shm_backend {
namespace {

constexpr std::uint64_t kKib = 1024;

// Where nothing was measured. Neither is any machine's number: a rank that is alone on its processor looks often before
// it yields; a part of a few pages hides the waits of most machines, and is cut finely enough to overlap.
constexpr std::uint32_t kLooksAlone = 60;
constexpr std::uint64_t kUnknownPart = std::uint64_t{8} << 10, kUnknownFoldAll = std::uint64_t{32} << 10;
// More ranks than processors: the awaited rank may itself wait for the processor. A line that is on its way arrives.
constexpr std::uint32_t kLooksCrowded = 3;
// A rank polls for as long as so many yields take: then polling costs about what it saves.
constexpr std::uint64_t kYieldsOfPolling = 3;
// A change of process enters the kernel on both sides.
constexpr std::uint64_t kYieldsOfSwitch = 2;
// A way that is measured with some noise must be so much better, in percent, to be taken.
constexpr std::uint64_t kClearly = 110, kSlotClearly = 102;
// Slots become faster meanwhile: ranks take memory for them, and find out how they are best written (StoreChoice).
constexpr std::uint64_t kBeforeTrials = std::uint64_t{16} << 20;
constexpr int kLeastBits = 13, kMostBits = 40;  // from a page on; below, the kernel's start alone costs more

// What a call takes, as far as the two ways differ in it.
class Model {
 public:
  Model(const GroupShape& shape, const Costs& costs) : shape_(shape), costs_(costs) {
    const auto ranks = static_cast<std::uint64_t>(shape.size),
               processors = static_cast<std::uint64_t>(shape.processors);
    crowd_ = std::max<std::uint64_t>(1, (ranks + processors - 1) / processors);
    switch_ = kYieldsOfSwitch * costs.yield;
    // Every rank must have run once before all know; alone on its processor, a rank reads one line of each other.
    wait_ = crowd_ > 1 ? crowd_ * switch_ : 2 * costs.line;
  }

  std::uint64_t crowd() const { return crowd_; }
  // A wait of two ranks for one another.
  std::uint64_t handover() const { return crowd_ > 1 ? switch_ : 2 * costs_.line; }
  // A wait for all, with what surrounds it. Where no rank makes way for another, that is most of it, and what a copy
  // through slots takes to start has as much of it.
  std::uint64_t meeting() const { return crowd_ > 1 ? wait_ : std::max(wait_, costs_.slot_start); }
  // How many bytes are copied in that time.
  std::uint64_t bytes_in(std::uint64_t time) const { return time * kKib / std::max<std::uint64_t>(1, costs_.slot_kib); }

  bool kernel_is_faster(KernelShape shape, std::uint64_t bytes) const {
    const std::uint64_t others = static_cast<std::uint64_t>(shape_.size) - 1;
    const std::uint64_t slot = large_kib() * bytes / kKib;
    const bool both = shape == KernelShape::vector_of_each || shape == KernelShape::block_of_each ||
                      shape == KernelShape::blocks_of_each;
    const std::uint64_t kernel_kib = both ? std::max(costs_.kernel_kib, costs_.exchange_kib) : costs_.kernel_kib;
    const std::uint64_t kernel = costs_.kernel_start + kernel_kib * bytes / kKib;
    const std::uint64_t exchanged = step_kib() * bytes / kKib;
    std::uint64_t by_slots = 0, by_kernel = 2 * wait_;
    switch (shape) {
      case KernelShape::vector_of_each:
        if (bytes <= fold_all()) return false;
        [[fallthrough]];
      case KernelShape::vector_of_one:
      case KernelShape::vector_to_one:
        // Beyond the cache, both ranks had better copy, and fold a half each.
        if (bytes > shape_.cache_bytes) return false;
        [[fallthrough]];
      case KernelShape::block_of_each:
        // What several ranks want of one stays in the caches in a slot.
        if (others > 1) return false;
        by_slots = costs_.slot_start + (both ? exchanged : slot);
        by_kernel += kernel;
        break;
      case KernelShape::blocks_to_one:
        if (bytes > shape_.cache_bytes) return false;
        by_slots = costs_.slot_start + others * slot;
        by_kernel += others * kernel;
        break;
      case KernelShape::blocks_of_one: {
        // One rank writes all blocks, or each copies its own, as many at a time as there are processors.
        const auto processors = static_cast<std::uint64_t>(shape_.processors);
        by_slots = costs_.slot_start + others * slot;
        by_kernel += (others + processors - 1) / processors * kernel;
        break;
      }
      case KernelShape::blocks_of_each:
        by_slots = costs_.slot_start + crowd_ * others * exchanged;
        by_kernel += crowd_ * others * kernel;
        break;
    }
    return by_kernel * kClearly < by_slots * 100;
  }

  // Through slots, for each KiB of much. Ranks that share a processor use the same part again.
  std::uint64_t large_kib() const { return crowd_ > 1 ? costs_.slot_kib : costs_.best_kib; }
  // The cost of a step's data and waits, for each KiB.
  std::uint64_t step_kib(std::size_t which) const {
    // A call waits for inputs, for results, and for a slot to be free; what was measured waited once.
    const std::uint64_t waits = crowd_ > 1 ? wait_ : 3 * handover();
    return costs_.step_kib[which] + waits * kKib / kSlotSizes[which];
  }
  std::uint64_t step_kib() const { return *std::min_element(costs_.step_kib.begin(), costs_.step_kib.end()); }

  std::size_t best_slot() const {
    std::size_t best = 0;
    for (std::size_t which = 1; which < kSlotSizes.size() && kSlotSizes[which] <= shape_.largest_slot; ++which) {
      if (step_kib(which) * kSlotClearly < step_kib(best) * 100) best = which;
    }
    return std::clamp(kSlotSizes[best], std::min(shape_.small_slot, shape_.largest_slot), shape_.largest_slot);
  }

  // Every rank folds n inputs, or a slice of n inputs: with slices it waits once more, copies (n - 1)/n of the results,
  // and puts that much of its input. Folding reads what a copy reads and writes, so it costs half.
  std::uint64_t fold_all() const {
    const auto n = static_cast<std::uint64_t>(shape_.size);
    return 2 * n * bytes_in(wait_) / (crowd_ * ((n - 1) * (n - 2) + 1));
  }

 private:
  const GroupShape& shape_;
  const Costs& costs_;
  std::uint64_t crowd_ = 1, switch_ = 0, wait_ = 0;
};

Tuning by_costs(const GroupShape& shape, const Costs& costs) {
  const Model model(shape, costs);
  Tuning tuning;
  const std::uint64_t polling = kYieldsOfPolling * costs.yield / std::max<std::uint64_t>(1, costs.look);
  tuning.looks = model.crowd() > 1
                     ? kLooksCrowded
                     : static_cast<std::uint32_t>(std::clamp<std::uint64_t>(polling, kLooksCrowded, 10'000));
  tuning.small_slot = shape.small_slot;
  tuning.slot = model.best_slot();
  tuning.least_part = model.bytes_in(model.handover());
  tuning.fold_all = shape.size < 2 ? 0 : model.fold_all();
  tuning.two_waits = model.bytes_in(2 * model.meeting());
  tuning.crowd = model.crowd();
  for (std::size_t which = 0; which < kKernelShapes; ++which) {
    // A copy by the kernel that starts at once is a mistake of the clock.
    if (costs.kernel_start == 0 || shape.size < 2) continue;
    for (int bits = kLeastBits; bits <= kMostBits; ++bits) {
      const std::uint64_t middle = std::uint64_t{3} << (bits - 2);
      if (model.kernel_is_faster(static_cast<KernelShape>(which), middle))
        tuning.kernel[which] |= std::uint64_t{1} << (bits - 1);
    }
  }
  return tuning;
}

Tuning by_caution(const GroupShape& shape) {
  const bool crowded = shape.size > shape.processors;
  Tuning tuning;
  tuning.looks = crowded ? kLooksCrowded : kLooksAlone;
  tuning.small_slot = tuning.slot = shape.small_slot;
  tuning.least_part = kUnknownPart;
  tuning.fold_all = kUnknownFoldAll / static_cast<std::uint64_t>(std::max(1, shape.size - 1));
  tuning.two_waits = kUnknownFoldAll;
  tuning.crowd = static_cast<std::uint64_t>(std::max(1, (shape.size + shape.processors - 1) / shape.processors));
  return tuning;
}

std::string sizes_in_words(std::uint64_t bits) {
  if (bits == 0) return "never";
  if (~bits == 0) return "always";
  const int first = std::countr_zero(bits), last = 63 - std::countl_zero(bits);
  if (last + 1 == kMostBits) return fmt::format("from {} KiB", (std::uint64_t{1} << first) >> 10);
  return fmt::format("from {} to {} KiB", (std::uint64_t{1} << first) >> 10, (std::uint64_t{2} << last) >> 10);
}

}  // namespace

Tuning decide(const GroupShape& shape, const std::optional<Costs>& costs, KernelCopies copies) {
  Tuning tuning = costs ? by_costs(shape, *costs) : by_caution(shape);
  if (costs) tuning.costs = *costs;
  tuning.copies = copies;
  tuning.before_trials = kBeforeTrials;
  // What a call writes has then left the caches before anybody reads it.
  tuning.streamed = shape.last_caches != 0
                        ? shape.last_caches
                        : kMostSecondLevels * shape.cache_bytes * static_cast<std::size_t>(shape.processors);
  // All slots together still leave room in the last-level caches.
  const std::size_t most = std::bit_floor(tuning.streamed / (2 * kSlots * static_cast<std::size_t>(shape.size)));
  tuning.wide_slot = std::clamp<std::size_t>(std::min(Area::wide_slot_bytes(shape.cache_bytes), most), tuning.slot,
                                             std::max<std::size_t>(tuning.slot, shape.largest_slot));
  if (copies == KernelCopies::off) tuning.kernel.fill(0);
  if (copies == KernelCopies::on) tuning.kernel.fill(~std::uint64_t{0});
  return tuning;
}

Tuning decide_as(const Tuning& parent, const GroupShape& shape) {
  const bool knows = parent.source == Tuning::Source::measured || parent.source == Tuning::Source::kept;
  Tuning tuning = decide(shape, knows ? std::optional(parent.costs) : std::nullopt, parent.copies);
  tuning.source = parent.source;
  tuning.before_trials = parent.before_trials;
  return tuning;
}

std::string in_words(const Tuning& tuning) {
  constexpr std::array<const char*, 4> kSources = {"calibration is off", "calibration failed", "calibrated now",
                                                   "calibrated before"};
  return fmt::format(
      "{}: slots of {} KiB, and of {} in calls that touch more than {} MiB; one copy by the kernel for broadcast {}, "
      "reduce {}, allreduce {}, scatter {}, gather {}, allgather {}, alltoall {}; each rank "
      "folds all up to {} bytes; {} looks before a yield",
      kSources[static_cast<std::size_t>(tuning.source)], tuning.slot >> 10, tuning.wide_slot >> 10,
      tuning.streamed >> 20, sizes_in_words(tuning.kernel[0]), sizes_in_words(tuning.kernel[1]),
      sizes_in_words(tuning.kernel[2]), sizes_in_words(tuning.kernel[3]), sizes_in_words(tuning.kernel[4]),
      sizes_in_words(tuning.kernel[5]), sizes_in_words(tuning.kernel[6]), tuning.fold_all, tuning.looks);
}

}  // namespace col::shm_backend
