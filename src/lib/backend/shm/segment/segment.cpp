#include "backend/shm/segment/segment.hpp"

#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstring>
#include <exception>
#include <new>
#include <string>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "backend/shm/segment/doorbell.hpp"
#include "backend/shm/segment/memory_room.hpp"
#include "backend/shm/segment/pooled_layout.hpp"
#include "backend/shm/segment/shared_file.hpp"
#include "core/control_group.hpp"

namespace col::shm_backend {
namespace {

constexpr std::size_t kAllRingsBytes = std::size_t{32} << 20;
constexpr std::size_t kSmallestRing = 4096;
constexpr std::size_t kLargestRing = 256 << 10;
// Of a few ranks: larger than most second-level caches, so that what a long message has put has left for the last level
// when it is read.
constexpr std::size_t kAllWideRings = std::size_t{16} << 20, kLargestWideRing = 2 << 20;
// What a rank needs besides to join a small group, and has not taken yet: measured 330 KiB in a group of four.
constexpr std::size_t kPrivateOfRank = std::size_t{512} << 10;

constexpr std::size_t kAllSlots = std::size_t{32} << 20;
constexpr std::size_t kSmallestSlot = 16 << 10;
constexpr std::size_t kLargestSmallSlot = 128 << 10;
constexpr std::size_t kUsualCache = std::size_t{1} << 20;
// All slots of a rank fill a quarter of its second-level cache, which also has to hold what it reads of others.
constexpr std::size_t kSlotsInCache = 16;

// ThreadSanitizer sees neither fences (gcc warns about this) nor the kernel's reads.
void fence([[maybe_unused]] std::memory_order order) noexcept {
#ifndef __SANITIZE_THREAD__
  std::atomic_thread_fence(order);
#endif
}

std::size_t places_at() noexcept {
  return sizeof(SegmentHeader);
}
std::size_t indices_at(std::size_t ranks) noexcept {
  return places_at() + ranks * sizeof(RankPlace);
}
std::size_t rings_at(std::size_t ranks) noexcept {
  constexpr std::size_t kPage = 4096;
  const std::size_t end = indices_at(ranks) + ranks * (ranks - 1) * sizeof(RingIndices);
  return (end + kPage - 1) / kPage * kPage;
}

[[noreturn]] void throw_no_room(std::size_t bytes, int size, const std::string& why) {
  throw Error(ErrorCode::resource,
              fmt::format("shm: no room for the {} KiB of shared memory that a group of {} ranks needs ({}); free "
                          "memory, or raise the limit that is in the way",
                          bytes >> 10, size, why));
}

// Beyond it the kernel would kill a process instead of giving an error. `ranks` of them take `bytes` of the `all`.
void check_memory(std::size_t bytes, int ranks, std::size_t all, int size) {
  const std::size_t private_bytes = static_cast<std::size_t>(ranks) * kPrivateOfRank;
  if (const auto lack = lack_of_memory(bytes + private_bytes)) throw_no_room(all, size, *lack);
}

std::size_t area_at(int size) noexcept {
  const auto ranks = static_cast<std::size_t>(size);
  return rings_at(ranks) + ranks * (ranks - 1) * Segment::ring_bytes_for(size);
}

using Mask = std::array<std::uint64_t, RankPlace::kMaskWords>;

// How many processors' time the control groups of this process leave to it; 0: no limit, or none that can be read.
std::uint32_t quota() {
  const auto processors = core::processor_quota();
  if (!processors) return 0;
  // Whole ones: a part of one is no place for a rank. The bound is for the cast.
  return static_cast<std::uint32_t>(std::clamp(*processors, 1.0, 1e6));
}

}  // namespace

// ---- The area of collectives

std::size_t Area::cache_bytes() noexcept {
  static const long kReported = ::sysconf(_SC_LEVEL2_CACHE_SIZE);  // 0 or -1 where the kernel does not tell
  return kReported > 0 ? static_cast<std::size_t>(kReported) : kUsualCache;
}

std::size_t Area::small_slot_bytes_for(int size) noexcept {
  const auto ranks = static_cast<std::size_t>(size);
  // One element at least of each rank's block.
  const std::size_t least = std::max(kSmallestSlot, std::bit_ceil(ranks * kLargestElement));
  const std::size_t wanted = std::bit_floor(std::min(kAllSlots / (kSlots * ranks), cache_bytes() / kSlotsInCache));
  return std::clamp(wanted, least, std::max(least, kLargestSmallSlot));
}

std::size_t Area::slot_bytes_for(int size) noexcept {
  const std::size_t small = small_slot_bytes_for(size);
  if (!can_populate()) return small;
  const std::size_t most = std::bit_floor(kAllSlots / (kSlots * static_cast<std::size_t>(size)));
  return std::max(small, std::min(most, std::max(kMostCachedSlot, wide_slot_bytes(cache_bytes()))));
}

std::size_t Area::bytes_for(int size, std::size_t slot_bytes) noexcept {
  return common_bytes(size) + static_cast<std::size_t>(size) * part_bytes(slot_bytes);
}

void Area::construct() const noexcept {
  new (base_) AreaHeader{};
  for (int rank = 0; rank < static_cast<int>(size_); ++rank) new (&done(rank)) StepsDone{};
}

void Area::construct_part(int rank) const noexcept {
  for (std::uint64_t step = 0; step < kHeaders; ++step) new (&header(rank, step)) StepHeader{};
}

// ---- The segment

std::size_t Segment::ring_bytes_for(int size) noexcept {
  const auto ranks = static_cast<std::size_t>(size);
  const std::size_t usual = std::clamp(std::bit_floor(kAllRingsBytes / (ranks * ranks)), kSmallestRing, kLargestRing);
  // Where all of it is taken at once, no more.
  if (!can_populate()) return usual;
  return std::max(usual, std::min(std::bit_floor(kAllWideRings / (ranks * ranks)), kLargestWideRing));
}

std::size_t Segment::bytes_for(int size) noexcept {
  return bytes_for(size, Area::slot_bytes_for(size));
}

std::size_t Segment::first_bytes_for(int size) noexcept {
  return bytes_for(size, Area::small_slot_bytes_for(size));
}

std::size_t Segment::bytes_for(int size, std::size_t slot_bytes) noexcept {
  return area_at(size) + Area::bytes_for(size, slot_bytes);
}

Segment::Segment(void* address, int size, std::size_t mapped_bytes, std::shared_ptr<Segment> root) noexcept
    : base_(static_cast<std::byte*>(address)),
      mapped_bytes_(mapped_bytes),
      size_(size),
      ring_bytes_(ring_bytes_for(size)),
      root_(std::move(root)) {}

Segment::~Segment() {
  if (root_ == nullptr)
    ::munmap(base_, mapped_bytes_);
  else if (!fork_guard_.is_forked_child())
    leave_pool();
}

// Maps `bytes` of the file, and where that is too much for this process, `least`.
std::shared_ptr<Segment> Segment::map(int fd, int size, std::size_t bytes, std::size_t least) {
  void* address = MAP_FAILED;
  for (const std::size_t wanted : {bytes, std::min(bytes, least)}) {
    address = ::mmap(nullptr, wanted, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    // Shared by the channels of this process: ranks may be its threads.
    if (address != MAP_FAILED) return std::shared_ptr<Segment>(new Segment(address, size, wanted));
  }
  const int error = errno;
  if (error == ENOMEM) throw_no_room(least, size, "this process's address space or number of mappings is used up");
  throw Error(ErrorCode::io, fmt::format("shm: cannot map shared memory ({}); check the limits and security "
                                         "settings of this process",
                                         std::generic_category().message(error)));
}

// In zeroed memory.
void Segment::construct(std::uint64_t token, std::size_t slot_bytes, std::size_t pool_bytes) const noexcept {
  auto* const header = new (base_) SegmentHeader{};
  for (int rank = 0; rank < size_; ++rank) new (&place(rank)) RankPlace{};
  header->token = token;
  header->size = static_cast<std::uint64_t>(size_);
  header->ring_bytes = ring_bytes_;
  header->slot_bytes = slot_bytes;
  header->small_slot_bytes = Area::small_slot_bytes_for(size_);
  header->pool_bytes = pool_bytes;
  area().construct();
}

std::shared_ptr<Segment> Segment::create(int fd, int size, std::uint64_t token) {
  const std::size_t bytes = bytes_for(size);
  // For all ranks: they usually share what limits there are.
  check_memory(first_bytes_for(size), size, first_bytes_for(size), size);
  // Groups in a pool take their memory later, which needs an error if there is none.
  std::size_t pool_bytes = can_populate() && size > 1 ? Pool::bytes_for(bytes) : 0;
  if (!allows_file(bytes + pool_bytes)) pool_bytes = 0;
  const auto require = [size](const std::optional<std::string>& problem) {
    if (problem) throw_no_room(first_bytes_for(size), size, *problem);
  };
  require(make_file(fd, bytes + pool_bytes, can_populate() ? 0 : bytes));
  auto segment = map(fd, size, bytes + pool_bytes, bytes);
  if (can_populate()) {  // the rest is taken by the rank that writes to it
    require(populate(segment->base_, rings_at(static_cast<std::size_t>(size))));
    require(populate(segment->base_ + area_at(size), Area::common_bytes(size)));
  }
  // Begins the lives of the objects in memory that nobody else sees yet.
  segment->construct(token, Area::slot_bytes_for(size), pool_bytes);
  for (int from = 0; from < size; ++from) {
    for (int to = 0; to < size; ++to) {
      if (from != to) new (&segment->indices(from, to)) RingIndices{};
    }
  }
  segment->find_pool();
  // release pairs with the acquire in open(): a rank that reads the magic sees everything above.
  segment->header().magic.store(kMagic, std::memory_order_release);
  return segment;
}

std::shared_ptr<Segment> Segment::open(int fd, int size, std::uint64_t token) {
  struct stat status {};
  // Only a file that is large enough is touched: beyond its end there is SIGBUS.
  if (::fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) ||
      static_cast<std::size_t>(status.st_size) < area_at(size) + Area::common_bytes(size))
    return nullptr;
  const auto bytes = static_cast<std::size_t>(status.st_size);
  auto segment = map(fd, size, bytes, bytes_for(size));
  const SegmentHeader& header = segment->header();
  if (header.magic.load(std::memory_order_acquire) != kMagic) return nullptr;  // pairs with create()
  const std::size_t own_bytes = bytes_for(size, header.slot_bytes);
  if (header.size != static_cast<std::uint64_t>(size) || header.ring_bytes != segment->ring_bytes_ ||
      bytes != own_bytes + header.pool_bytes || segment->mapped_bytes_ < own_bytes)
    return nullptr;
  if (header.token != token) {
    throw Error(ErrorCode::mismatch,
                fmt::format("shm: the shared memory is that of another group (token {:016x}, expected {:016x}); create "
                            "the group again",
                            header.token, token));
  }
  segment->find_pool();
  return segment;
}

void Segment::find_pool() noexcept {
  const std::size_t bytes = header().pool_bytes;
  if (bytes == 0 || mapped_bytes_ < bytes_for(size_, header().slot_bytes) + bytes) return;
  std::byte* const begin = base_ + mapped_bytes_ - bytes;
  ::madvise(begin, bytes, MADV_DONTDUMP);  // mostly nothing, and large
  pool_ = Pool(begin, bytes);
}

std::size_t Segment::own_bytes() const noexcept {
  return root_ != nullptr ? PooledLayout(size_).bytes(header().slot_bytes) : bytes_for(size_, header().slot_bytes);
}

void Segment::claim(int rank) const {
  const Area own = area();
  if (can_populate()) {
    const std::size_t small = small_slot_bytes();
    // This rank may be in another control group than rank 0.
    check_memory(kSlotsHeader + kSlots * small, 1, first_bytes_for(size_), size_);
    take_memory(own.part_of(rank), kSlotsHeader);
    for (std::size_t slot = 0; slot < kSlots; ++slot) take_memory(own.slot_data(rank, slot), small);
  }
  own.construct_part(rank);
}

void Segment::take_memory(std::byte* begin, std::size_t bytes) const {
  if (const auto problem = populate(begin, bytes)) throw_lack(*problem);
}

void Segment::throw_lack(const std::string& why) const {
  throw_no_room(own_bytes(), size_, why);
}

SegmentHeader& Segment::header() const noexcept {
  return *std::launder(reinterpret_cast<SegmentHeader*>(base_));
}

RankPlace& Segment::place(int rank) const noexcept {
  return reinterpret_cast<RankPlace*>(base_ + places_at())[rank];
}

std::size_t Segment::pair(int from, int to) const noexcept {
  const auto others = static_cast<std::size_t>(size_ - 1);
  return static_cast<std::size_t>(from) * others + static_cast<std::size_t>(to < from ? to : to - 1);
}

RingIndices& Segment::indices(int from, int to) const noexcept {
  const std::size_t at =
      root_ != nullptr ? PooledLayout(size_).indices_at() : indices_at(static_cast<std::size_t>(size_));
  return reinterpret_cast<RingIndices*>(base_ + at)[pair(from, to)];
}

std::byte* Segment::ring(int from, int to) const noexcept {
  const std::size_t at = root_ != nullptr ? PooledLayout(size_).rings_at() : rings_at(static_cast<std::size_t>(size_));
  return base_ + at + pair(from, to) * ring_bytes_;
}

Area Segment::area() const noexcept {
  if (root_ == nullptr) return {base_ + area_at(size_), size_, header().slot_bytes};
  const PooledLayout layout(size_);
  return {base_ + layout.area_at(), base_ + layout.slots_at(), size_, header().slot_bytes};
}

// ---- How the group ends

void Segment::abort(int rank, const Error& cause) noexcept {
  AbortRecord& record = header().abort;
  std::uint32_t none = AbortRecord::kNone;
  // Only the winner writes the record, and no rank reads it before it is `written`. seq_cst: a rank that fails looks
  // next which ranks work on its memory, and a rank that works has said so before it looks here (lending.hpp).
  if (record.state.compare_exchange_strong(none, AbortRecord::kWriting, std::memory_order_seq_cst)) {
    record.code = static_cast<std::int32_t>(cause.code());
    record.aborter = rank;
    record.culprit = cause.rank();
    record.is_loss = cause.is_loss();
    const std::size_t length = std::min(cause.message().size(), AbortRecord::kMaxMessage);
    std::memcpy(record.message, cause.message().data(), length);
    record.message[length] = '\0';
    // Pairs with aborted(): a rank that sees this sees the record. seq_cst, because the doorbells are read next
    // (doorbell.hpp).
    record.state.store(AbortRecord::kWritten, std::memory_order_seq_cst);
  }
  // Pairs with ending_after_reads(): a rank that has read what this rank's user writes from now on sees that the group
  // ends.
  fence(std::memory_order_release);
  for (int other = 0; other < size_; ++other) Doorbell(place(other).doorbell).ring();
}

bool Segment::aborted() const noexcept {
  // Pairs with abort(). seq_cst, as it is the last look of a rank that goes to sleep (doorbell.hpp).
  return header().abort.state.load(std::memory_order_seq_cst) == AbortRecord::kWritten;
}

bool Segment::ending() const noexcept {
  return header().abort.state.load(std::memory_order_seq_cst) != AbortRecord::kNone;  // see abort()
}

bool Segment::ending_after_reads() const noexcept {
  fence(std::memory_order_acquire);  // pairs with abort()
  return header().abort.state.load(std::memory_order_relaxed) != AbortRecord::kNone;
}

std::optional<Error> Segment::abort_error() const {
  if (!aborted()) return std::nullopt;
  const AbortRecord& record = header().abort;
  const auto code = static_cast<ErrorCode>(record.code);
  const std::string text = fmt::format("rank {} ended the group ({}: {}); destroy it and create it anew",
                                       record.aborter, to_string(code), record.message);
  return Error(code == ErrorCode::peer_lost ? ErrorCode::peer_lost : ErrorCode::aborted, text, {},
               record.culprit >= 0 ? record.culprit : record.aborter, -1, record.is_loss);
}

// ---- How many processors the ranks of a group have together

void Segment::tell_processors(int rank, std::optional<std::uint32_t> known_quota) const noexcept {
  RankPlace& own = place(rank);
  cpu_set_t set;
  CPU_ZERO(&set);
  Mask mask{};
  std::uint32_t known = RankPlace::kUnlisted;
  if (::sched_getaffinity(0, sizeof set, &set) == 0) {
    static_assert(sizeof mask < sizeof set);
    std::memcpy(mask.data(), &set, sizeof mask);  // bit i of the set is processor i
    std::size_t listed = 0;
    for (const std::uint64_t word : mask) listed += static_cast<std::size_t>(std::popcount(word));
    if (listed == static_cast<std::size_t>(CPU_COUNT(&set))) known = RankPlace::kListed;
  }
  std::copy(mask.begin(), mask.end(), own.processors);
  try {
    own.processors_quota = known_quota ? *known_quota : quota();
  } catch (const std::exception&) {  // no memory to read it
    own.processors_quota = 0;
  }
  // release pairs with the acquire in processors().
  own.processors_known.store(known, std::memory_order_release);
}

bool Segment::is_here(int rank) const noexcept {
  return place(rank).processors_known.load(std::memory_order_acquire) != RankPlace::kUnknown;
}

// seq_cst, as the doorbells are read next (doorbell.hpp). The others find the tuning with it.
void Segment::decide(Verdict verdict) const noexcept {
  header().verdict.store(static_cast<std::uint32_t>(verdict), std::memory_order_seq_cst);
  for (int rank = 0; rank < size_; ++rank) Doorbell(place(rank).doorbell).ring();
}

Verdict Segment::verdict() const noexcept {
  return static_cast<Verdict>(header().verdict.load(std::memory_order_seq_cst));
}

std::optional<int> Segment::processors() const noexcept {
  Mask all{};
  std::uint32_t limit = 0;
  bool listed = true;
  for (int rank = 0; rank < size_; ++rank) {
    const RankPlace& one = place(rank);
    const std::uint32_t known = one.processors_known.load(std::memory_order_acquire);
    if (known == RankPlace::kUnknown) return std::nullopt;
    listed = listed && known == RankPlace::kListed;
    if (one.processors_quota != 0) limit = limit == 0 ? one.processors_quota : std::min(limit, one.processors_quota);
    for (std::size_t word = 0; word < all.size(); ++word) all[word] |= one.processors[word];
  }
  int count = 0;
  for (const std::uint64_t word : all) {
    if (word != 0) count += std::popcount(word);  // a call of a function, where any processor may run this
  }
  if (!listed) count = static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));  // asks the kernel, by a file
  if (limit != 0) count = std::min(count, static_cast<int>(limit));
  return std::max(1, count);
}

bool Segment::are_apart() const noexcept {
  Mask all{};
  for (int rank = 0; rank < size_; ++rank) {
    const RankPlace& one = place(rank);
    if (one.processors_known.load(std::memory_order_acquire) != RankPlace::kListed) return false;
    for (std::size_t word = 0; word < all.size(); ++word) {
      if ((all[word] & one.processors[word]) != 0) return false;
      all[word] |= one.processors[word];
    }
  }
  return true;
}

}  // namespace col::shm_backend
