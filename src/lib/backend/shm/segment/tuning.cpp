#include "backend/shm/segment/tuning.hpp"

#include <sched.h>

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include <col/error.hpp>

#include "backend/shm/segment/last_caches.hpp"
#include "backend/shm/segment/layout.hpp"
#include "backend/shm/segment/memory_room.hpp"
#include "backend/shm/segment/segment.hpp"
#include "core/env.hpp"

namespace col::shm_backend {
namespace {

constexpr std::uint64_t kKib = 1024;

// The first values, which are nowhere bad. Neither is any machine's number: a rank that is alone on its processor looks
// often before it yields; a part of a page hides the waits of most machines, and is cut finely enough to overlap.
constexpr std::uint32_t kLooksAlone = 60;
constexpr std::uint64_t kLeastPart = 4 * kKib, kFoldAll = 32 * kKib;
// Where ranks share a processor, a wait is a change of process, which takes as long as a copy of so much.
constexpr std::uint64_t kLeastPartCrowded = 8 * kKib;
// More ranks than processors: the awaited rank may itself wait for the processor. A line that is on its way arrives.
constexpr std::uint32_t kLooksCrowded = 3;
// Slots become faster meanwhile: ranks take memory for them, and find out how they are best written (StoreChoice).
constexpr std::uint64_t kBeforeTrials = std::uint64_t{16} << 20;
// The sizes that the kernel may serve, in bits: from two pages on, as its start alone costs more than less takes. A
// copy by the kernel needs two waits for all ranks, which are changes of process where ranks share a processor.
constexpr int kLeastBits = 13, kLeastBitsCrowded = 16, kMostBits = 40;

// Where trying may pay. Elsewhere slots win on every machine: what several ranks want of one stays in the caches there,
// and beyond the second-level cache both ranks had better copy, and fold a half each.
bool may_be_faster(const GroupShape& shape, KernelShape call, std::uint64_t bytes, std::uint64_t fold_all) {
  switch (call) {
    case KernelShape::vector_of_each:
      if (bytes <= fold_all) return false;
      [[fallthrough]];
    case KernelShape::vector_of_one:
    case KernelShape::vector_to_one:
      return shape.size == 2 && bytes <= shape.cache_bytes;
    case KernelShape::block_of_each:
      return shape.size == 2;
    case KernelShape::blocks_to_one:
      return bytes <= shape.cache_bytes;
    case KernelShape::blocks_of_one:
    case KernelShape::blocks_of_each:
      break;
  }
  return true;
}

std::string sizes_in_words(std::uint64_t bits) {
  if (bits == 0) return "never";
  if (~bits == 0) return "always";
  const int first = std::countr_zero(bits), last = 63 - std::countl_zero(bits);
  if (last + 1 == kMostBits) return fmt::format("from {} KiB", (std::uint64_t{1} << first) >> 10);
  return fmt::format("from {} to {} KiB", (std::uint64_t{1} << first) >> 10, (std::uint64_t{2} << last) >> 10);
}

[[noreturn]] void refuse(const char* name, std::string_view value, const char* allowed) {
  throw Error(ErrorCode::invalid_argument, fmt::format("{}={} is none of {}", name, value, allowed));
}

}  // namespace

GroupShape shape_of(const Segment& segment, int processors) {
  const std::size_t small = segment.small_slot_bytes(), largest = segment.area().slot_bytes();
  const std::size_t more = static_cast<std::size_t>(segment.size()) * kSlots * (largest - small);
  return {.size = segment.size(),
          .processors = processors,
          .small_slot = small,
          .largest_slot = lack_of_memory(more) ? small : largest,
          .cache_bytes = Area::cache_bytes(),
          .last_caches = last_caches_of(processors, std::max(0, ::sched_getcpu()))};
}

TuningSettings TuningSettings::of_environment() {
  TuningSettings settings;
  const std::string tries = core::env::get("COL_CALIBRATE").value_or("on");
  if (tries != "on" && tries != "off") refuse("COL_CALIBRATE", tries, "on, off");
  settings.tries = tries == "on";
  const std::string copies = core::env::get("COL_CMA").value_or("auto");
  if (copies == "off")
    settings.copies = KernelCopies::off;
  else if (copies == "on")
    settings.copies = KernelCopies::on;
  else if (copies != "auto")
    refuse("COL_CMA", copies, "auto, off, on");
  return settings;
}

Tuning decide(const GroupShape& shape, const TuningSettings& settings) {
  const int others = std::max(1, shape.size - 1);
  Tuning tuning;
  tuning.copies = settings.copies;
  tuning.tries = settings.tries ? 1 : 0;
  tuning.crowd = static_cast<std::uint64_t>(std::max(1, (shape.size + shape.processors - 1) / shape.processors));
  tuning.looks = tuning.crowd > 1 ? kLooksCrowded : kLooksAlone;
  tuning.small_slot = shape.small_slot;
  tuning.least_part = tuning.crowd > 1 ? kLeastPartCrowded : kLeastPart;
  // The dearer a wait, the more is copied to save one; the more ranks, the more there is to fold.
  tuning.two_waits = kFoldAll * tuning.crowd;
  tuning.fold_all = tuning.two_waits / static_cast<std::uint64_t>(others);
  // Then what a call writes has left the caches before anybody reads it.
  tuning.streamed = shape.last_caches != 0
                        ? shape.last_caches
                        : kMostSecondLevels * shape.cache_bytes * static_cast<std::size_t>(shape.processors);
  // All slots together still leave room in the last-level caches.
  const std::size_t most = std::bit_floor(tuning.streamed / (2 * kSlots * static_cast<std::size_t>(shape.size)));
  // All of a rank are in its second-level cache.
  const std::size_t cached = std::min({std::bit_floor(shape.cache_bytes / kSlots), kMostCachedSlot, most});
  tuning.slot = std::clamp(cached, std::min(shape.small_slot, shape.largest_slot), shape.largest_slot);
  tuning.wide_slot = std::clamp<std::size_t>(std::min(Area::wide_slot_bytes(shape.cache_bytes), most), tuning.slot,
                                             std::max<std::size_t>(tuning.slot, shape.largest_slot));
  tuning.before_trials = kBeforeTrials;
  if (settings.copies == KernelCopies::on) tuning.kernel.fill(~std::uint64_t{0});
  if (settings.copies != KernelCopies::automatic || !settings.tries || shape.size < 2) return tuning;
  for (std::size_t which = 0; which < kKernelShapes; ++which) {
    for (int bits = tuning.crowd > 1 ? kLeastBitsCrowded : kLeastBits; bits <= kMostBits; ++bits) {
      const std::uint64_t middle = std::uint64_t{3} << (bits - 2);
      if (may_be_faster(shape, static_cast<KernelShape>(which), middle, tuning.fold_all))
        tuning.kernel[which] |= std::uint64_t{1} << (bits - 1);
    }
  }
  return tuning;
}

Tuning decide_as(const Tuning& parent, const GroupShape& shape) {
  Tuning tuning = decide(shape, {.copies = parent.copies, .tries = parent.tries != 0});
  tuning.before_trials = parent.before_trials;
  return tuning;
}

std::string in_words(const Tuning& tuning) {
  return fmt::format(
      "{}: slots of {} KiB, and of {} in calls that touch more than {} MiB; one copy by the kernel for broadcast {}, "
      "reduce {}, allreduce {}, scatter {}, gather {}, allgather {}, alltoall {}; each rank "
      "folds all up to {} bytes; {} looks before a yield",
      tuning.tries != 0 ? "ranks try what is faster" : "nothing is tried", tuning.slot >> 10, tuning.wide_slot >> 10,
      tuning.streamed >> 20, sizes_in_words(tuning.kernel[0]), sizes_in_words(tuning.kernel[1]),
      sizes_in_words(tuning.kernel[2]), sizes_in_words(tuning.kernel[3]), sizes_in_words(tuning.kernel[4]),
      sizes_in_words(tuning.kernel[5]), sizes_in_words(tuning.kernel[6]), tuning.fold_all, tuning.looks);
}

}  // namespace col::shm_backend
