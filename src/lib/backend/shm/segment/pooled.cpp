// A segment in the pool of another one: how it begins, takes memory, and ends. The rings and large slots of any
// segment take memory in the same way.
#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>
#include <utility>

#include "backend/shm/segment/memory_room.hpp"
#include "backend/shm/segment/pooled_layout.hpp"
#include "backend/shm/segment/segment.hpp"
#include "backend/shm/segment/shared_file.hpp"

namespace col::shm_backend {
namespace {

// The least that is taken of a slot, or of a ring.
constexpr std::size_t kSmallestClaim = 4096;
static_assert(kSmallestClaim >= kParts * kPartBytes);

}  // namespace

std::shared_ptr<Segment> Segment::reserve(const std::shared_ptr<Segment>& of, int size, std::uint64_t token) {
  const std::shared_ptr<Segment>& root = of->root_ != nullptr ? of->root_ : of;
  const PooledLayout layout(size);
  const std::size_t slot_bytes = Area::slot_bytes_for(size), bytes = layout.bytes(slot_bytes);
  const std::size_t kept = layout.indices_at();
  const auto place = root->pool_.take(bytes, kept);
  if (!place) return nullptr;
  std::byte* const begin = root->pool_.at(*place);
  if (populate(begin, kept)) {  // no memory is no room
    root->pool_.give_back(*place, bytes, kept, false);
    return nullptr;
  }
  std::memset(begin, 0, layout.words_at());
  // Not shared with other threads: each rank has its own, and the last one that ends gives the memory back.
  auto segment = std::shared_ptr<Segment>(new Segment(begin, size, 0, root));
  segment->construct(token, slot_bytes, 0);
  for (int rank = 0; rank < size; ++rank) segment->area().construct_part(rank);
  // As in create(). The RingIndices begin as zeros, which is what their construction makes: they take no memory yet.
  segment->header().magic.store(kMagic, std::memory_order_release);
  return segment;
}

std::shared_ptr<Segment> Segment::open(const std::shared_ptr<Segment>& of, std::uint64_t place, int size,
                                       std::uint64_t token) {
  const std::shared_ptr<Segment>& root = of->root_ != nullptr ? of->root_ : of;
  const PooledLayout layout(size);
  const Pool& pool = root->pool_;
  if (pool.exists()) pool.after_leavers();
  const auto is_it = [&](const SegmentHeader& header) {
    return header.magic.load(std::memory_order_acquire) == kMagic && header.token == token &&
           header.size == static_cast<std::uint64_t>(size);
  };
  if (!pool.holds(place, layout.indices_at()) || !is_it(*reinterpret_cast<const SegmentHeader*>(pool.at(place))))
    throw Error(ErrorCode::internal, "shm: the memory of a new group is not where its first rank says");
  auto segment = std::shared_ptr<Segment>(new Segment(pool.at(place), size, 0, root));
  // Not vital: what is not entered now is entered at the first touch.
  static_cast<void>(populate(segment->base_, layout.words_at()));
  return segment;
}

std::uint64_t Segment::place_in_pool() const noexcept {
  return root_->pool_.place_of(base_);
}

// Beyond it the kernel would kill a process.
void Segment::require_memory() {
  if (has_asked_.exchange(true, std::memory_order_relaxed)) return;
  std::size_t bytes = static_cast<std::size_t>(size_ - 1) * ring_bytes_;
  if (root_ != nullptr) {
    header().used.store(1, std::memory_order_relaxed);
    bytes += kSlots * area().slot_bytes() + static_cast<std::size_t>(size_ - 1) * sizeof(RingIndices);
  }
  if (const auto lack = lack_of_memory(bytes)) throw_lack(*lack);
}

std::size_t Segment::claim_slots(int rank, std::size_t claimed, std::size_t bytes) {
  if (bytes <= std::max(claimed, kInlineBytes) || !can_populate()) return claimed;
  const std::size_t until = std::min(std::bit_ceil(std::max(bytes, kSmallestClaim)), area().slot_bytes());
  if (root_ != nullptr)
    require_memory();
  else if (const auto lack = lack_of_memory(kSlots * (until - claimed)))
    throw_lack(*lack);
  for (std::size_t slot = 0; slot < kSlots; ++slot)
    take_memory(area().slot_data(rank, slot) + claimed, until - claimed);
  return until;
}

std::size_t Segment::claim_ring(int rank, int to, std::size_t claimed, std::size_t bytes) {
  if (root_ == nullptr && !can_populate()) return ring_bytes_;  // create() has taken it
  require_memory();
  if (claimed == 0 && root_ != nullptr)
    take_memory(reinterpret_cast<std::byte*>(&indices(rank, to)), sizeof(RingIndices));
  const std::size_t until = std::min(std::bit_ceil(std::max(bytes, kSmallestClaim)), ring_bytes_);
  take_memory(ring(rank, to) + claimed, until - claimed);
  return until;
}

void Segment::leave_pool() const noexcept {
  SegmentHeader& own = header();
  const PooledLayout layout(size_);
  const std::size_t bytes = layout.bytes(own.slot_bytes);
  root_->pool_.let_go();
  // acq_rel: whatever any rank has touched comes before the memory is given back.
  if (own.gone.fetch_add(1, std::memory_order_acq_rel) + 1 < static_cast<std::uint32_t>(size_)) return;
  const bool used = own.used.load(std::memory_order_relaxed) != 0;
  root_->pool_.give_back(root_->pool_.place_of(base_), bytes, layout.indices_at(), used);
}

char* Segment::words_at(int rank) const noexcept {
  return reinterpret_cast<char*>(base_ + PooledLayout(size_).words_at(rank));
}

std::optional<int> Segment::post_farewell(int rank, std::string_view words) const noexcept {
  if (root_ == nullptr) return std::nullopt;
  const std::size_t length = words.copy(words_at(rank), backend::CommonMemoryOps::kLongestFarewell);
  // release: pairs with farewell_of().
  place(rank).words.store(static_cast<std::uint32_t>(length) + 1, std::memory_order_release);
  // acq_rel: the last rank sees the words of all.
  return static_cast<int>(header().speakers.fetch_add(1, std::memory_order_acq_rel)) + 1;
}

std::optional<std::string> Segment::farewell_of(int rank) const {
  const std::uint32_t length = root_ == nullptr ? 0 : place(rank).words.load(std::memory_order_acquire);
  if (length == 0) return std::nullopt;
  return std::string(words_at(rank), std::min<std::size_t>(length - 1, backend::CommonMemoryOps::kLongestFarewell));
}

}  // namespace col::shm_backend
