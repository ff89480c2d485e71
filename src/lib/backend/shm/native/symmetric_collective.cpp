#include "backend/shm/native/symmetric_collective.hpp"

#include <algorithm>
#include <array>

#include "core/kernels/to_others.hpp"

namespace col::shm_backend {
namespace {

// What is folded once and then copied to several: it stays in the first cache meanwhile.
constexpr std::size_t kBlockBytes = std::size_t{8} << 10;
// Between two looks at whether the group has ended.
constexpr std::size_t kBetweenRests = std::size_t{1} << 20;

Whereabouts::Location place_of(const void* memory, std::size_t bytes, const SymmetricHeap& heap) {
  if (bytes == 0) return {Whereabouts::kNothing, 0};
  const SymmetricMemory* const region = heap.find(memory, bytes);
  if (region == nullptr) return {};
  return {region->number(), *region->offset_of(memory, bytes)};
}

// How often through slots a processor copies what it does not copy here, counted in vectors or blocks.
std::uint64_t copies_saved(const CollectiveRow& row, int size, std::uint64_t crowd) {
  const auto others = static_cast<std::uint64_t>(size - 1);
  if (row.reduces()) return row.out == Extent::block ? crowd * others : row.out_on_root ? crowd : 2 * crowd;
  if (row.out == Extent::vector) return 1;  // the root's, into its slots
  if (row.in_on_root) return others;
  return row.in == Extent::blocks ? crowd * others : crowd;
}

}  // namespace

bool SymmetricCollective::suits(const Request& request, int size, const Tuning& tuning) noexcept {
  const CollectiveRow& row = row_of(request.collective);
  if (row.out == Extent::nothing || row.has_private_counts()) return false;
  if (request.order == Order::tree) return false;
  // Nobody may change another's input, and multiplied ones have to lie somewhere.
  if (row.reduces() && (row.folds != Folds::all || request.op.kind() == Op::Kind::premul_sum)) return false;
  // The type of the side that every rank has: it is the same on all of them.
  const DType dtype = row.has_input(false) ? request.in.dtype : request.out.dtype;
  // It waits twice more: to tell where the buffers are, and for all to be done.
  return Movement::length_of(request, size) * col::size_of(dtype) * copies_saved(row, size, tuning.crowd) >=
         std::max<std::uint64_t>(1, tuning.two_waits);
}

Whereabouts SymmetricCollective::whereabouts(const Request& request, const SymmetricHeap& heap) {
  Whereabouts own;
  const CollectiveRow& row = row_of(request.collective);
  const bool exchanges = row.in == Extent::blocks && row.out == Extent::blocks;
  if (exchanges && request.in.data == request.out.data) return own;
  own.in = place_of(request.in.data, request.in.bytes(), heap);
  own.out = place_of(request.out.data, request.out.bytes(), heap);
  return own;
}

SymmetricCollective::SymmetricCollective(const Request& request, const SymmetricHeap& heap, const Tuning& tuning,
                                         int rank, int size, std::span<const Presence> all,
                                         std::span<const std::byte*> sources)
    : request_(request),
      rank_(rank),
      size_(size),
      sources_(sources),
      dtype_(Movement::dtype_of(request, rank)),
      size_of_(col::size_of(dtype_)) {
  possible_ = is_reachable(all);
  if (!possible_) return;
  find_memory(all, heap);
  const bool in_place = request.in.data == request.out.data;
  const std::size_t bytes = Movement::length_of(request, size) * size_of_;
  if (!in_place && touched_by_all(row_of(request.collective), bytes, size) > tuning.streamed)
    stores_ = core::Stores::streaming;
}

bool SymmetricCollective::is_reachable(std::span<const Presence> all) const {
  const auto shares = [](const Whereabouts::Location& place) { return place.region != Whereabouts::kPrivate; };
  // Of rooted calls alone is the root known to be a rank.
  const auto root = [&]() -> const Whereabouts& { return all[static_cast<std::size_t>(request_.root)].whereabouts; };
  const CollectiveRow& row = row_of(request_.collective);
  if (row.in_on_root) return shares(root().in);
  if (row.out_on_root && !row.reduces()) return shares(root().out);
  const auto all_share = [&](Whereabouts::Location Whereabouts::*side) {
    return std::all_of(all.begin(), all.end(), [&](const auto& each) { return shares(each.whereabouts.*side); });
  };
  if (row.in != Extent::nothing && !all_share(&Whereabouts::in)) return false;
  if (row.out != Extent::vector) return true;
  return row.out_on_root ? shares(root().out) : all_share(&Whereabouts::out);
}

void SymmetricCollective::find_memory(std::span<const Presence> all, const SymmetricHeap& heap) {
  const auto address = [&](const Whereabouts::Location& place, std::size_t rank) -> std::byte* {
    const SymmetricMemory* const region = place.region == Whereabouts::kPrivate ? nullptr : heap.find(place.region);
    return region == nullptr ? nullptr : region->part(static_cast<int>(rank)) + place.offset;
  };
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    inputs_.push_back(address(all[rank].whereabouts.in, rank));
    outputs_.push_back(address(all[rank].whereabouts.out, rank));
  }
  // By its own addresses, whether or not others can reach them.
  inputs_[static_cast<std::size_t>(rank_)] = const_cast<std::byte*>(static_cast<const std::byte*>(request_.in.data));
  outputs_[static_cast<std::size_t>(rank_)] = static_cast<std::byte*>(request_.out.data);
}

void SymmetricCollective::run(const Rest& rest) {
  const auto own = static_cast<std::size_t>(rank_), root = static_cast<std::size_t>(request_.root);
  const std::size_t in_bytes = request_.in.bytes(), out_bytes = request_.out.bytes();
  const CollectiveRow& row = row_of(request_.collective);
  if (row.reduces()) {
    if (row.out == Extent::vector) {
      const std::span<std::byte* const> all = outputs_;
      return fold_into(row.out_on_root ? all.subspan(root, 1) : all, slice(request_.in.count), 0, rest);
    }
    const ElementRange mine = block_of(rank_, request_.in_counts, request_.out.count);
    return fold_into({&outputs_[own], 1}, mine, mine.begin, rest);
  }
  if (row.out == Extent::vector) return copy_slice(rest);
  if (row.out_on_root) return copy(outputs_[root] + own * in_bytes, inputs_[own], in_bytes, rest);
  if (row.in_on_root) return copy(outputs_[own], inputs_[root] + own * out_bytes, out_bytes, rest);
  // From the next rank on, so that not all read the same memory at once.
  const bool to_all = row.in == Extent::blocks;
  const std::size_t each = request_.out.count / static_cast<std::size_t>(size_);
  for (int i = 0; i < size_; ++i) {
    const int peer = (rank_ + i) % size_;
    const ElementRange theirs = block_of(peer, request_.out_counts, each);
    const std::size_t from = to_all ? own * each : 0;
    copy(outputs_[own] + theirs.begin * size_of_, inputs_[static_cast<std::size_t>(peer)] + from * size_of_,
         theirs.count * size_of_, rest);
  }
}

// Folds `from` of all inputs to the same place less `shift` in all targets.
void SymmetricCollective::fold_into(std::span<std::byte* const> targets, ElementRange from, std::size_t shift,
                                    const Rest& rest) {
  const auto place = [&](std::byte* target, std::size_t begin) { return target + (begin - shift) * size_of_; };
  // To two targets in one pass, past the caches or where the fold has just read what it replaces. Else the result is
  // made once, in the first cache, and copied to all: it is made in this rank's own output, unless that gets none or is
  // written past the caches.
  const bool streams = stores_ == core::Stores::streaming, in_place = request_.in.data == request_.out.data;
  const bool copies = streams || in_place ? targets.size() > 2 : targets.size() > 1 || targets[0] != own_output();
  const bool by_block = copies && (streams || targets.size() == 1);
  alignas(kAlignment) std::array<std::byte, kBlockBytes> block;
  const std::size_t most = (copies ? kBlockBytes : kBetweenRests) / size_of_;
  std::size_t until_rest = 0;
  for (std::size_t done = 0; done < from.count; done += most) {
    const std::size_t begin = from.begin + done, count = std::min(most, from.count - done), bytes = count * size_of_;
    for (std::size_t rank = 0; rank < sources_.size(); ++rank) sources_[rank] = inputs_[rank] + begin * size_of_;
    core::FoldTarget first{block.data()}, second;
    if (!by_block) first = {place(copies ? own_output() : targets[0], begin), stores_};
    if (!copies && targets.size() == 2) second = {place(targets[1], begin), stores_};
    core::fold(request_.op, dtype_, false, sources_, sources_.size(), first, second, count);
    for (std::size_t i = 0; copies && i < targets.size(); ++i) {
      std::byte* const to = place(targets[i], begin);
      if (to != first.data) copy_block(to, first.data, bytes);
    }
    until_rest += bytes;
    if (until_rest < kBetweenRests) continue;
    until_rest = 0;
    rest();
  }
}

// This rank's slice of the root's vector, to all others: read once, while each rank reads another part.
void SymmetricCollective::copy_slice(const Rest& rest) {
  const std::size_t most = std::max<std::size_t>(1, kBlockBytes / size_of_);
  const ElementRange mine = slice(request_.out.count);
  std::size_t until_rest = 0;
  for (std::size_t done = 0; done < mine.count; done += most) {
    const std::size_t begin = (mine.begin + done) * size_of_, bytes = std::min(most, mine.count - done) * size_of_;
    for (std::size_t rank = 0; rank < outputs_.size(); ++rank) {
      if (static_cast<int>(rank) != request_.root)
        copy_block(outputs_[rank] + begin, outputs_[static_cast<std::size_t>(request_.root)] + begin, bytes);
    }
    until_rest += bytes;
    if (until_rest < kBetweenRests) continue;
    until_rest = 0;
    rest();
  }
}

// To the memory of any rank.
void SymmetricCollective::copy_block(std::byte* to, const std::byte* from, std::size_t bytes) const {
  if (stores_ == core::Stores::streaming)
    core::copy(to, from, bytes, stores_);
  else
    core::copy_to_others(to, from, bytes);
}

void SymmetricCollective::copy(std::byte* to, const std::byte* from, std::size_t bytes, const Rest& rest) const {
  if (to == from) return;
  for (std::size_t done = 0; done < bytes; done += kBetweenRests) {
    core::copy(to + done, from + done, std::min(kBetweenRests, bytes - done), stores_);
    rest();
  }
}

}  // namespace col::shm_backend
