#include "backend/shm/native/movement.hpp"

#include <bit>
#include <cstring>

#include "core/kernels/mixed.hpp"
#include "core/kernels/reduce.hpp"
#include "core/kernels/to_others.hpp"
#include "core/kernels/tree_fold.hpp"
#include "core/kernels/usual_floats.hpp"

namespace col::shm_backend {
namespace {

std::size_t longest(std::span<const std::size_t> counts) {
  return counts.empty() ? 0 : *std::max_element(counts.begin(), counts.end());
}

}  // namespace

std::size_t Movement::length_of(const Request& request, int size) {
  const CollectiveRow& row = row_of(request.collective);
  if (row.counts == BlockCounts::everyone)
    return longest(row.in == Extent::blocks ? request.in_counts : request.out_counts);
  if (row.in == Extent::nothing || row.out == Extent::block) return request.out.count;
  return row.in == Extent::blocks ? request.in.count / static_cast<std::size_t>(size) : request.in.count;
}

DType Movement::dtype_of(const Request& request, int rank) {
  return row_of(request.collective).has_input(request.root == rank) ? request.in.dtype : request.out.dtype;
}

Movement::Movement(const Request& request, Form form, const Area& area, int rank, int size, std::size_t length,
                   std::size_t chunk_bytes, core::Stores stores, bool is_beyond, SlotWriting& writing,
                   std::span<const std::byte*> sources)
    : request_(request),
      row_(row_of(request.collective)),
      form_(form),
      area_(area),
      rank_(rank),
      size_(size),
      stores_(stores),
      writing_(writing),
      readers_(form == Form::to_root || form == Form::from_root || form == Form::fold_at ? SlotWriting::Readers::others
                                                                                         : SlotWriting::Readers::all),
      sources_(sources),
      dtype_(row_.reduces() ? dtype_of(request, rank) : DType::uint8),
      units_(row_.reduces() ? 1 : col::size_of(dtype_of(request, rank))),
      scaled_(folds(form) && request.op.kind() == Op::Kind::premul_sum),
      wide_(scaled_ && core::accumulation_type(dtype_) != dtype_),
      is_tree_(request.order == Order::tree),
      by_tree_(is_tree_ && !core::is_left_fold(static_cast<std::size_t>(size))),
      own_in_slot_(scaled_ || form == Form::fold_all),
      by_blocks_(row_.in == Extent::blocks),
      in_size_(wide_ ? col::size_of(core::accumulation_type(dtype_)) : col::size_of(dtype_)),
      size_of_(col::size_of(dtype_)),
      length_(length * units_) {
  const std::size_t blocks = by_blocks_ ? static_cast<std::size_t>(size) : 1;
  if (!scaled_) choice_ = writing.choice(readers_, length_ * in_size_ * blocks, is_beyond);
  if (length_ * in_size_ * blocks <= std::min(chunk_bytes, area.slot_bytes())) {  // no divisions for small calls
    chunk_ = std::max<std::size_t>(1, length_);
    const bool is_cut = by_blocks_ || form == Form::fold_slices || form == Form::fold_slices_at || scaled_;
    if (!is_cut && !row_.has_counts()) simple_bytes_ = length_ * size_of_;
    if (form == Form::fold_all && simple_bytes_ <= kPartBytes) kept_bytes_ = simple_bytes_;
    if (simple_bytes_ <= kInlineBytes && stores == core::Stores::cached) few_bytes_ = simple_bytes_;
    if (few_bytes_ != 0 && folds(form) && form != Form::fold_lower && !by_tree_)
      (is_tree_ ? few_in_tree_ : few_fold_) = core::few_fold(request.op, dtype_, static_cast<std::size_t>(size));
    part_ = std::bit_ceil(slot_bytes());
    return;
  }
  const std::size_t most = area.slot_bytes() / blocks / in_size_;
  const std::size_t wanted = std::max<std::size_t>(1, std::min(chunk_bytes / blocks / in_size_, most));
  // Equal chunks: no short one at the end that costs as many waits.
  const std::size_t count = std::max<std::size_t>(1, (length_ + wanted - 1) / wanted);
  chunk_ = std::max<std::size_t>(1, std::min(most, aligned_up((length_ + count - 1) / count, in_size_)));
  steps_ = std::max<std::size_t>(1, (length_ + chunk_ - 1) / chunk_);
  part_ = std::bit_ceil(slot_bytes());
}

ElementRange Movement::chunk(std::uint64_t index, std::size_t length) const noexcept {
  const std::size_t begin = std::min(length, static_cast<std::size_t>(index) * chunk_);
  return {begin, std::min(chunk_, length - begin)};
}

// The block of a rank, in units.
ElementRange Movement::block(int rank, std::span<const std::size_t> counts) const noexcept {
  if (counts.empty()) return block_of(rank, {}, length_);
  const ElementRange elements = block_of(rank, counts, 0);
  return {elements.begin * units_, elements.count * units_};
}

// The most that the slots of this step hold: the data of small steps is in the header.
std::size_t Movement::slot_data_bytes(std::uint64_t index) const noexcept {
  if (by_blocks_) return static_cast<std::size_t>(size_) * chunk_ * in_size_;
  return chunk(index, length_).count * in_size_;
}

std::byte* Movement::slot(int rank, std::uint64_t index, std::uint64_t step) const noexcept {
  return area_.data(rank, step, slot_data_bytes(index));
}

void Movement::copy_out(std::size_t begin, const std::byte* from, std::size_t count) const {
  if (count > 0) core::copy(output() + begin * size_of_, from, count * size_of_, stores_);
}

void Movement::move_own() const {
  if (!has_own()) return;
  const bool to_blocks = row_.out == Extent::blocks;
  const std::byte* from = input();
  if (by_blocks_) from += block(rank_, request_.in_counts).begin * size_of_;
  const ElementRange to = to_blocks ? block(rank_, request_.out_counts) : ElementRange{0, request_.out.count * units_};
  std::byte* const own = output() + to.begin * size_of_;
  if (own == from || to.count == 0) return;
  // Where only a root has something to move, it has the caches for itself meanwhile: memcpy() knows how large they are.
  if (row_.rooted)
    std::memcpy(own, from, to.count * size_of_);
  else
    copy_out(to.begin, from, to.count);
}

// From the user's memory, at `begin`, to a slot.
std::size_t Movement::copy_in(std::byte* to, std::size_t begin, std::size_t count, core::Stores stores) const {
  if (count == 0) return 0;
  const std::byte* const memory = row_.in == Extent::nothing ? output() : input();
  const std::byte* const from = memory + begin * size_of_;
  if (scaled_) {
    const core::UsualFloats floats(is_tree_);
    core::premultiply_to(request_.op.scale(), dtype_, from, wide_, to, count);
  } else {
    core::copy_to_others(to, from, count * size_of_, stores);
  }
  return count * in_size_;
}

void Movement::put_more(std::uint64_t index, std::uint64_t step) const {
  if (simple_bytes_ == 0 || simple_bytes_ >= core::kLeastWhole) return put_chunk(index, step);
  const std::byte* const from = row_.in == Extent::nothing ? output() : input();
  if (kept_bytes_ != 0) std::memcpy(kept_, from, kept_bytes_);
  area_.put_data(rank_, step, simple_bytes_, 0, [&](std::byte* to) { return std::memcpy(to, from, simple_bytes_); });
}

void Movement::put_chunk(std::uint64_t index, std::uint64_t step) const {
  using core::StoreChoice;
  if (length_ == 0) return;
  const std::size_t bytes = slot_data_bytes(index);
  const auto write = [&](StoreChoice::Way way) {
    const std::size_t offset = way == StoreChoice::Way::onward ? writing_.onward(step, part_) : 0;
    return area_.put_data(rank_, step, bytes, offset,
                          [&](std::byte* to) { return write_chunk(to, index, StoreChoice::stores_of(way)); });
  };
  if (choice_ != nullptr)
    choice_->run(terms(), bytes, write);
  else
    write(StoreChoice::Way::again);
}

std::size_t Movement::write_chunk(std::byte* to, std::uint64_t index, core::Stores stores) const {
  if (by_blocks_) {
    std::size_t written = 0;
    for (int peer = 0; peer < size_; ++peer) {
      if (peer == rank_ && !scaled_) continue;
      const ElementRange whole = block(peer, request_.in_counts);
      const ElementRange part = chunk(index, whole.count);
      written += copy_in(to + place(peer), whole.begin + part.begin, part.count, stores);
    }
    return written;
  }
  const std::size_t length = row_.in == Extent::block ? request_.in.count * units_ : length_;
  const ElementRange part = chunk(index, length);
  if (scaled_ || (form_ != Form::fold_slices && form_ != Form::fold_slices_at))
    return copy_in(to, part.begin, part.count, stores);
  const ElementRange own = slice(rank_, part);
  const std::size_t after = own.begin + own.count;
  return copy_in(to, part.begin, own.begin, stores) +
         copy_in(to + after * in_size_, part.begin + after, part.count - after, stores);
}

// `shown`: what other ranks read next.
void Movement::reduce(std::span<const std::byte*> inputs, core::FoldTarget out, core::FoldTarget shown,
                      std::size_t count) const {
  const auto ranks = static_cast<std::size_t>(size_);
  if (by_tree_) return core::tree_fold(request_.op, dtype_, wide_, inputs, ranks, out, shown, count);
  if (shown.data != nullptr) return core::fold_to_others(request_.op, dtype_, wide_, inputs, ranks, out, shown, count);
  core::fold(request_.op, dtype_, wide_, inputs, ranks, out, {}, count);
}

void Movement::fold_more(std::uint64_t index, std::uint64_t step) const {
  const core::UsualFloats floats(is_tree_);
  if (few_in_tree_.kernel != nullptr) return fold_few(few_in_tree_, step);
  if (simple_bytes_ != 0 && form_ != Form::fold_lower) {
    for (int rank = 0; rank < size_; ++rank) {
      const bool from_slot = rank != rank_ || (own_in_slot_ && kept_bytes_ == 0);
      const std::byte* const own = kept_bytes_ != 0 ? kept_ : input();
      sources_[static_cast<std::size_t>(rank)] = from_slot ? area_.data(rank, step, simple_bytes_) : own;
    }
    return reduce(sources_.first(static_cast<std::size_t>(size_)), {output(), stores_}, {}, length_);
  }
  fold_chunk(index, step);
}

void Movement::fold_chunk(std::uint64_t index, std::uint64_t step) const {
  ElementRange part = chunk(index, form_ == Form::fold_own ? block(rank_, request_.in_counts).count : length_);
  std::size_t own = part.begin;  // where this rank's input begins
  std::size_t place_in_slot = 0;
  int end = size_;
  if (form_ == Form::fold_slices || form_ == Form::fold_slices_at) {
    const ElementRange mine = slice(rank_, part);
    place_in_slot = mine.begin * in_size_;
    part = {part.begin + mine.begin, mine.count};
    own = part.begin;
  } else if (form_ == Form::fold_own) {
    place_in_slot = place(rank_);
    own += block(rank_, request_.in_counts).begin;
  } else if (form_ == Form::fold_lower) {
    end = row_.folds == Folds::below_rank ? rank_ : rank_ + 1;
  }
  if (part.count == 0 || end == 0) return;
  for (int rank = 0; rank < end; ++rank) {
    const bool from_slot = rank != rank_ || own_in_slot_;
    sources_[static_cast<std::size_t>(rank)] =
        from_slot ? slot(rank, index, step) + place_in_slot : input() + own * size_of_;
  }
  const bool shows = form_ == Form::fold_slices || (form_ == Form::fold_slices_at && !is_root());
  const core::FoldTarget shown{
      shows ? slot(rank_, index, step) + place_in_slot : nullptr,
      choice_ != nullptr ? core::StoreChoice::stores_of(choice_->best(terms())) : core::Stores::cached};
  // A result that is narrower than the inputs would overwrite those that are still to be read: it goes there
  // afterwards.
  const bool shows_later = shows && wide_;
  // On ranks other than the root, an output has no meaning.
  core::FoldTarget out;
  if (form_ != Form::fold_slices_at || is_root())
    out = {output() + part.begin * size_of_, shows_later ? core::Stores::cached : stores_};
  const std::span<const std::byte*> inputs = sources_.first(static_cast<std::size_t>(end));
  reduce(inputs, out, shows && !shows_later ? shown : core::FoldTarget(), part.count);
  if (shows_later) core::copy_to_others(shown.data, out.data, part.count * size_of_, shown.stores);
}

void Movement::take_more(std::uint64_t index, std::uint64_t step, int peer) const {
  if (simple_bytes_ != 0 && stores_ == core::Stores::cached) {
    const std::size_t begin = row_.out == Extent::blocks ? static_cast<std::size_t>(peer) * simple_bytes_ : 0;
    if (row_.out != Extent::nothing)
      std::memcpy(output() + begin, area_.data(peer, step, simple_bytes_), simple_bytes_);
    return;
  }
  if (length_ == 0) return;
  const std::byte* from = slot(peer, index, step);
  if (row_.reduces()) {  // what the peer has folded
    const ElementRange part = chunk(index, length_);
    const ElementRange theirs = slice(peer, part);
    return copy_out(part.begin + theirs.begin, from + theirs.begin * in_size_, theirs.count);
  }
  ElementRange whole{0, row_.out == Extent::nothing ? 0 : request_.out.count * units_};
  if (row_.out == Extent::blocks) whole = block(peer, request_.out_counts);
  if (by_blocks_) from += place(rank_);
  const ElementRange part = chunk(index, whole.count);
  copy_out(whole.begin + part.begin, from, part.count);
}

}  // namespace col::shm_backend
