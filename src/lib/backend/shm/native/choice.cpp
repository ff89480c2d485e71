#include "backend/shm/native/choice.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>

#include "backend/shm/native/cma.hpp"
#include "backend/shm/native/movement.hpp"

namespace col::shm_backend {
namespace {

constexpr std::string_view kName = "shared";

// A slot holds at least one element of this size from each rank. Longer ones go by a plan.
bool fits_slot(const Op& /*op*/, DType dtype) noexcept {
  return size_of(dtype) <= Area::kLargestElement;
}

// Each rank's contribution goes into its slot as it is.
bool is_one_each(std::span<const std::size_t> shares) noexcept {
  return std::ranges::all_of(shares, [](std::size_t share) { return share == 1; });
}

constexpr auto kEntries = [] {
  std::array<NativeEntry, std::ranges::count(kCollectives, false, &CollectiveRow::is_message)> entries{};
  std::size_t next = 0;
  for (std::size_t i = 0; i < kCollectives.size(); ++i) {
    if (!kCollectives[i].is_message)
      entries[next++] = {.collective = static_cast<Collective>(i),
                         .name = kName,
                         .rank_order = true,
                         .asynchronous = true,
                         .reduces = &fits_slot,
                         .keeps_tree = &is_one_each};
  }
  return entries;
}();

// A root that folds alone holds up no more than this many.
constexpr int kFewRanks = 4;
// Data from or to one rank is cut so that both sides work at the same time.
constexpr std::size_t kRootedParts = 8;

}  // namespace

std::span<const NativeEntry> native_entries() noexcept {
  return kEntries;
}

Choice choose(const Request& request, std::size_t bytes, int size, const Tuning& tuning) {
  const CollectiveRow& row = row_of(request.collective);
  const std::size_t all = row.in == Extent::blocks ? bytes * static_cast<std::size_t>(size) : bytes;
  const bool is_beyond = touched_by_all(row, bytes, size) > tuning.streamed;
  const std::size_t slot = is_beyond ? tuning.wide_slot : all <= tuning.small_slot ? tuning.small_slot : tuning.slot;
  // Where a rank that waits for a free slot would have to make way for the one that frees it, all parts find a slot.
  const std::size_t parts = tuning.crowd > 1 ? kSlots : kRootedParts;
  const std::size_t part = is_beyond ? slot : slot / 2;
  // Rather few parts than short ones, but four: with two, hardly anything is copied at the same time.
  const std::size_t least = std::clamp<std::size_t>(bytes / kSlots, tuning.least_part, 2 * tuning.least_part);
  const std::size_t rooted = std::clamp(bytes / parts, std::min(least, part), part);
  const bool in_place = request.in.data == request.out.data;
  const core::Stores stores = is_beyond && !in_place ? core::Stores::streaming : core::Stores::cached;
  const bool is_small = bytes <= tuning.fold_all;
  // Narrow floats that are multiplied are wider in a slot than the result, which goes there by way of the output: a
  // rank that is not the root has none.
  const bool is_wide = request.op.kind() == Op::Kind::premul_sum && size_of(request.in.dtype) < sizeof(float);
  if (row.is_message)
    throw Error(ErrorCode::internal, fmt::format("shm: {} was called, but is no collective of this backend's own; "
                                                 "please report this as a bug in col",
                                                 row.name));
  const auto by = [&](Form form, std::size_t chunk_bytes) { return Choice{form, chunk_bytes, stores, is_beyond}; };
  if (row.reduces()) {
    if (row.out == Extent::block) return by(Form::fold_own, slot);
    if (row.folds != Folds::all) return by(Form::fold_lower, slot);
    if (!row.rooted) return by(is_small ? Form::fold_all : Form::fold_slices, slot);
    if (is_small || is_wide || size <= kFewRanks) return by(Form::fold_at, rooted);
    return by(Form::fold_slices_at, slot);
  }
  if (!row.rooted) return by(Form::between_all, slot);
  if (row.out_on_root) return by(Form::to_root, rooted);
  return by(Form::from_root, row.in_on_root ? slot : rooted);
}

std::string how(const Request& request, int size, const Tuning& tuning) {
  if (CmaCollective::suits(request, size, tuning)) {
    return tuning.copies == KernelCopies::on
               ? "one copy by the kernel, where it works"
               : "one copy by the kernel, where it works and is faster than slots, which the ranks try";
  }
  const CollectiveRow& row = row_of(request.collective);
  if (!row.has_data()) return "no data moves";
  const std::size_t length = row.has_private_counts()
                                 ? std::max(request.in.count, request.out.count) / static_cast<std::size_t>(size)
                                 : Movement::length_of(request, size);
  const Choice choice = choose(request, length * size_of(request.out.dtype), size, tuning);
  return fmt::format("through slots, at most {} KiB a step", choice.chunk_bytes >> 10);
}

}  // namespace col::shm_backend
