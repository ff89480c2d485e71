#include "backend/shm/native/collectives.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "backend/shm/native/lending.hpp"
#include "core/log.hpp"

namespace col::shm_backend {
namespace {

constexpr std::string_view kName = "shared";
// How long a rank that has found a mismatch waits for the calls of all others, and then for what they are in words, and
// how often it asks.
constexpr Duration kVotingTime = std::chrono::milliseconds(500);
constexpr Duration kTimeForWords = std::chrono::milliseconds(250);  // those who notice nothing say theirs after 100
constexpr Duration kTimeToLetGo = std::chrono::milliseconds(200);
constexpr Duration kVotingPause = std::chrono::milliseconds(5);

// A slot holds at least one element of this size from each rank. Longer ones go by a plan.
bool fits_slot(const Op& /*op*/, DType dtype) noexcept {
  return size_of(dtype) <= Area::kLargestElement;
}

constexpr auto kEntries = [] {
  std::array<NativeEntry, std::ranges::count(kCollectives, false, &CollectiveRow::is_message)> entries{};
  std::size_t next = 0;
  for (std::size_t i = 0; i < kCollectives.size(); ++i) {
    if (!kCollectives[i].is_message)
      entries[next++] = {
          .collective = static_cast<Collective>(i), .name = kName, .rank_order = true, .reduces = &fits_slot};
  }
  return entries;
}();

// Up to this size in total, reading all inputs on every rank is faster than one more wait.
constexpr std::size_t kFoldAllBytes = std::size_t{32} << 10;
// A root that folds alone holds up no more than this many.
constexpr int kFewRanks = 4;
// What goes from or to one rank is cut so that both sides work at the same time.
constexpr std::size_t kRootedParts = 8, kSmallestPart = std::size_t{8} << 10;

}  // namespace

// The real Port of steps.hpp.
template <class Moves>
class Collectives::Port {
  static_assert(kReuse == kSlots);

 public:
  Port(Collectives& own, const Moves& moves, std::uint64_t fingerprint, WaitContext& wait)
      : own_(own), area_(own.area_), moves_(moves), fingerprint_(fingerprint), wait_(wait) {}

  void wait_done(std::uint64_t step) {
    if (own_.least_seen_done_ >= step) return;
    std::uint64_t least = ~std::uint64_t{0};
    for (int peer = 0; peer < own_.size_; ++peer) {
      if (peer == own_.rank_) continue;
      std::uint64_t& seen = own_.seen_done_[static_cast<std::size_t>(peer)];
      if (seen < step) {
        const auto& done = area_.done(peer).step;
        // acquire: the peer's reads of this rank's slot come before this rank's next writes to it.
        own_.waiter_.until([&] { return (seen = done.load(std::memory_order_seq_cst)) >= step; }, peer, wait_);
      }
      least = std::min(least, seen);
    }
    own_.least_seen_done_ = least;
  }

  void put(std::uint64_t index, std::uint64_t step) {
    moves_.put(index, step);
    SlotHeader& slot = area_.slot(own_.rank_, step);
    slot.fingerprint = fingerprint_;
    slot.done = area_.done(own_.rank_).step.load(std::memory_order_relaxed);
  }
  void tell_ready(std::uint64_t step) { tell(area_.slot(own_.rank_, step).ready, step); }
  void tell_folded(std::uint64_t step) { tell(area_.slot(own_.rank_, step).folded, step); }
  void tell_done(std::uint64_t step) { tell(area_.done(own_.rank_).step, step); }

  void wait_ready(int peer, std::uint64_t step) {
    const SlotHeader& slot = area_.slot(peer, step);
    own_.waiter_.until([&] { return slot.ready.load(std::memory_order_seq_cst) >= step; }, peer, wait_);
    if (slot.fingerprint != fingerprint_) throw OtherCall{peer};
    std::uint64_t& seen = own_.seen_done_[static_cast<std::size_t>(peer)];
    seen = std::max(seen, slot.done);
  }
  void wait_folded(int peer, std::uint64_t step) {
    const SlotHeader& slot = area_.slot(peer, step);
    own_.waiter_.until([&] { return slot.folded.load(std::memory_order_seq_cst) >= step; }, peer, wait_);
  }

  void fold(std::uint64_t index, std::uint64_t step) { moves_.fold(index, step); }
  void take(std::uint64_t index, std::uint64_t step, int peer) { moves_.take(index, step, peer); }

 private:
  void tell(std::atomic<std::uint64_t>& word, std::uint64_t step) {
    // release: what this rank has written, or read, comes before. seq_cst, as the sleepers are looked at next.
    word.store(step, std::memory_order_seq_cst);
    own_.waiter_.wake_others();
  }

  Collectives& own_;
  const Area& area_;
  const Moves& moves_;
  const std::uint64_t fingerprint_;
  WaitContext& wait_;
};

// All ranks wait for all, and may tell one another something of the same kind.
template <class Told>
class Collectives::Telling {
 public:
  // `told`: by rank, including this one; empty: nothing is told.
  Telling(const Area& area, int rank, std::span<Told> told) : area_(area), rank_(rank), told_(told) {}

  void put(std::uint64_t /*index*/, std::uint64_t step) const {
    static_assert(sizeof(Told) <= kInlineBytes);
    if (!told_.empty()) std::memcpy(area_.slot(rank_, step).inline_data, &told_[at(rank_)], sizeof(Told));
  }
  void fold(std::uint64_t /*index*/, std::uint64_t /*step*/) const {}
  void take(std::uint64_t /*index*/, std::uint64_t step, int peer) const {
    if (!told_.empty()) std::memcpy(&told_[at(peer)], area_.slot(peer, step).inline_data, sizeof(Told));
  }

 private:
  static std::size_t at(int rank) { return static_cast<std::size_t>(rank); }

  const Area& area_;
  const int rank_;
  const std::span<Told> told_;
};

// All ranks tell all others how many elements they send to each rank.
class Collectives::Counting {
 public:
  Counting(const Area& area, int rank, std::span<const std::uint64_t> sent, std::span<const std::uint64_t> expected,
           std::uint64_t& longest)
      : area_(area), rank_(rank), sent_(sent), expected_(expected), longest_(longest) {}

  void put(std::uint64_t /*index*/, std::uint64_t step) const {
    std::memcpy(area_.data(rank_, step, sent_.size_bytes()), sent_.data(), sent_.size_bytes());
  }
  void fold(std::uint64_t /*index*/, std::uint64_t /*step*/) const {}
  void take(std::uint64_t /*index*/, std::uint64_t step, int peer) const {
    const std::byte* const row = area_.data(peer, step, sent_.size_bytes());
    for (std::size_t rank = 0; rank < sent_.size(); ++rank) {
      std::uint64_t count = 0;
      std::memcpy(&count, row + rank * sizeof count, sizeof count);
      longest_ = std::max(longest_, count);
      if (static_cast<int>(rank) == rank_ && count != expected_[static_cast<std::size_t>(peer)]) throw OtherCall{peer};
    }
  }

 private:
  const Area& area_;
  const int rank_;
  const std::span<const std::uint64_t> sent_, expected_;
  std::uint64_t& longest_;
};

// The real Port of work_on_others().
template <class Work>
class Collectives::Loan {
 public:
  Loan(Collectives& own, const Work& work, WaitContext& wait)
      : own_(own), work_(work), rest_([this, &wait] {
          own_.attendant_.attend();
          wait.check();
        }) {}
  Loan(const Loan&) = delete;
  Loan& operator=(const Loan&) = delete;

  // seq_cst: either look() sees the end of the group, or the rank that has ended it sees this (take_back()).
  void begin_work() { works().store(1, std::memory_order_seq_cst); }
  void end_work() noexcept { works().store(0, std::memory_order_release); }  // pairs with take_back()
  void look() {
    rest_();
    if (own_.segment_.ending()) throw_end();
  }
  void work() { work_(rest_); }
  void look_after_work() {
    if (own_.segment_.ending_after_reads()) throw_end();
  }

 private:
  std::atomic<std::uint32_t>& works() const { return own_.segment_.place(own_.rank_).works; }
  // The reason is being written, unless the writer was killed: the wait ends in any case.
  [[noreturn]] void throw_end() {
    for (;; std::this_thread::yield()) rest_();
  }

  Collectives& own_;
  const Work& work_;
  const SymmetricCollective::Rest rest_;
};

Collectives::Collectives(const std::string& group, const Segment& segment, SymmetricHeap& heap, int rank,
                         Attendant& attendant)
    : group_(group),
      segment_(segment),
      heap_(heap),
      area_(segment.area()),
      rank_(rank),
      size_(segment.size()),
      attendant_(attendant),
      waiter_(segment, rank, attendant),
      seen_done_(static_cast<std::size_t>(segment.size())),
      sources_(static_cast<std::size_t>(segment.size())),
      cma_(group, rank, segment.token()),
      presences_(static_cast<std::size_t>(segment.size())) {
  waiter_.set_patience(Patience::of(true));  // until all have told which processors they have
}

std::span<const NativeEntry> Collectives::entries() noexcept {
  return kEntries;
}

void Collectives::look_at_processors() {
  if (knows_processors_) return;
  const auto processors = segment_.processors();
  if (!processors) return;
  knows_processors_ = true;
  crowded_ = size_ > *processors;
  waiter_.set_patience(Patience::of(crowded_));
  if (rank_ != 0) return;
  core::log::info("group '{}': {} ranks on {} processors: {}", group_, size_, *processors,
                  crowded_ ? "a rank that waits lets others run at once" : "ranks wait at full speed for a moment");
}

Collectives::Choice Collectives::choose(const Request& request, std::size_t bytes) const {
  const std::size_t slot = area_.slot_bytes();
  const std::size_t rooted = std::clamp(bytes / kRootedParts, kSmallestPart, slot / 2);
  const bool in_place = request.in.data == request.out.data;
  const core::Stores stores = !in_place && bytes >= kStreamedBytes ? core::Stores::streaming : core::Stores::cached;
  const bool is_small = bytes * static_cast<std::size_t>(size_ - 1) <= kFoldAllBytes;
  // 16-bit floats that are multiplied are wider in a slot than the result, which goes there by way of the output: a
  // rank that is not the root has none.
  const bool is_wide = request.op.kind() == Op::Kind::premul_sum && size_of(request.in.dtype) < sizeof(float);
  const CollectiveRow& row = row_of(request.collective);
  if (row.is_message)
    throw Error(ErrorCode::internal, fmt::format("shm: {} was called, but is no collective of this backend's own; "
                                                 "please report this as a bug in col",
                                                 row.name));
  if (row.reduces()) {
    if (row.out == Extent::block) return {Form::fold_own, slot, stores};
    if (row.folds != Folds::all) return {Form::fold_lower, slot, stores};
    if (!row.rooted) return {is_small ? Form::fold_all : Form::fold_slices, slot, stores};
    if (is_small || is_wide || size_ <= kFewRanks) return {Form::fold_at, rooted, stores};
    return {Form::fold_slices_at, slot, stores};
  }
  if (!row.rooted) return {Form::between_all, slot, core::Stores::cached};
  if (row.out_on_root) return {Form::to_root, rooted, core::Stores::cached};
  return {Form::from_root, row.in_on_root ? slot : rooted, core::Stores::cached};
}

template <class Moves>
void Collectives::go(const Request& request, const Moves& moves, const Pattern& pattern, std::uint64_t steps,
                     WaitContext& wait) {
  const std::uint64_t first = next_step_;
  next_step_ += steps;
  Port<Moves> port(*this, moves, request.fingerprint, wait);
  run_steps(port, pattern, {rank_, size_, request.root}, first, steps);
}

void Collectives::run(const Request& request, WaitContext& wait) {
  look_at_processors();
  area_.done(rank_).enter(++call_, request.fingerprint);
  waiter_.set_call(call_, request.fingerprint);
  try {
    if (run_without_slots(request, wait)) return;
    run_through_slots(request, wait);
  } catch (const OtherCall& other) {
    throw_mismatch(other.peer, wait);
  }
}

void Collectives::run_through_slots(const Request& request, WaitContext& wait) {
  const bool asks = row_of(request.collective).has_private_counts();
  const std::size_t length = asks ? agree_on_length(request, wait) : Movement::length_of(request, size_);
  const Choice choice = choose(request, length * size_of(Movement::dtype_of(request, rank_)));
  const Movement movement(request, choice.form, area_, rank_, size_, length, choice.chunk_bytes, choice.stores,
                          sources_);
  if (row_of(request.collective).counts == BlockCounts::pairs && request.in.data == request.out.data &&
      !std::equal(request.in_counts.begin(), request.in_counts.end(), request.out_counts.begin())) {
    // In place, and arriving data is not in the place of sent data: blocks would be overwritten before they are sent.
    const auto* const input = static_cast<const std::byte*>(request.in.data);
    const std::vector<std::byte> copy(input, input + request.in.bytes());
    Request moved = request;
    moved.in.data = copy.data();
    const Movement safe(moved, choice.form, area_, rank_, size_, length, choice.chunk_bytes, choice.stores, sources_);
    return move(request, safe, choice.form, wait);
  }
  move(request, movement, choice.form, wait);
}

void Collectives::move(const Request& request, const Movement& movement, Form form, WaitContext& wait) {
  Pattern pattern = pattern_of(form, rank_, size_, request.root);
  // Its own input goes through its slot, too.
  pattern.puts = pattern.puts || (movement.is_scaled() && pattern.folds != Peers::none);
  movement.move_own();
  go(request, movement, pattern, movement.steps(), wait);
}

// Every rank tells all others how much it sends to each of them: then all know the longest block, and each that it gets
// what it expects.
std::size_t Collectives::agree_on_length(const Request& request, WaitContext& wait) {
  const auto root = static_cast<std::size_t>(request.root);
  sent_.assign(static_cast<std::size_t>(size_), 0);
  expected_.assign(static_cast<std::size_t>(size_), 0);
  const auto set = [](std::vector<std::uint64_t>& row, std::span<const std::size_t> counts) {
    std::copy(counts.begin(), counts.end(), row.begin());
  };
  const CollectiveRow& row = row_of(request.collective);
  const bool is_root = rank_ == request.root;
  if (row.in == Extent::block)
    sent_[root] = request.in.count;
  else if (row.has_input(is_root))
    set(sent_, request.in_counts);
  if (row.out == Extent::block)
    expected_[root] = request.out.count;
  else if (row.has_output(is_root))
    set(expected_, request.out_counts);
  std::uint64_t longest = *std::max_element(sent_.begin(), sent_.end());
  go(request, Counting(area_, rank_, sent_, expected_, longest), pattern_of(Form::between_all, rank_, size_, 0), 1,
     wait);
  return longest;
}

// Returns false if not all ranks can reach the buffers. Nothing has been done then.
bool Collectives::run_without_slots(const Request& request, WaitContext& wait) {
  const bool may_be_symmetric = heap_.any() && SymmetricCollective::suits(request, size_);
  const bool may_use_cma = cma_.may_work() && CmaCollective::suits(request, size_);
  if (!may_be_symmetric && !may_use_cma) return false;

  Presence& own = presences_[static_cast<std::size_t>(rank_)];
  own = {};
  if (may_be_symmetric) own.whereabouts = SymmetricCollective::whereabouts(request, heap_);
  own.addresses = CmaCollective::addresses(request);
  own.identity = cma_.identity();
  others_may_write_ = may_be_symmetric;
  meet<Presence>(request, presences_, wait);

  if (may_be_symmetric) {
    SymmetricCollective symmetric(request, heap_, rank_, size_, presences_, sources_);
    if (symmetric.possible()) {
      borrow([&](const auto& rest) { symmetric.run(rest); }, wait);
      meet<Presence>(request, {}, wait);
      others_may_write_ = false;
      return true;
    }
  }
  others_may_write_ = false;  // all know that it is not possible
  if (!may_use_cma) return false;
  if (!cma_.works()) {
    cma_.learn(presences_);
    return false;
  }
  const CmaCollective by_cma(request, rank_, size_, presences_);
  if (!by_cma.possible()) return false;
  bool all_read = false;
  borrow([&](const auto& rest) { all_read = by_cma.run(cma_, rest); }, wait);
  own.identity.reaches_all = all_read ? 1 : 0;
  meet<Presence>(request, presences_, wait);
  return cma_.all_have_read(presences_);
}

// A rank's share of a call that works on others' memory.
template <class Work>
void Collectives::borrow(const Work& work, WaitContext& wait) {
  Loan<Work> loan(*this, work, wait);
  work_on_others(loan);
}

void Collectives::take_back() noexcept {
  if (!std::exchange(others_may_write_, false)) return;
  if (!segment_.ending()) return heap_.detach();  // no memory for the words
  struct Lender {
    const Segment& segment;
    SymmetricHeap& heap;
    const Deadline deadline = Deadline::after(kTimeToLetGo);

    // A rank that comes late sees that the group has ended. A rank that works sees it soon, unless it has been stopped.
    bool wait_idle(int peer) const {
      while (segment.place(peer).works.load(std::memory_order_seq_cst) != 0) {  // see Loan::begin_work()
        if (deadline.expired()) return false;
        std::this_thread::yield();
      }
      return true;
    }
    void detach() const { heap.detach(); }
  } lender{segment_, heap_};
  shm_backend::take_back(lender, rank_, size_);
}

template <class Told>
void Collectives::meet(const Request& request, std::span<Told> told, WaitContext& wait) {
  go(request, Telling<Told>(area_, rank_, told), pattern_of(Form::between_all, rank_, size_, request.root), 1, wait);
}

// ---- Calls that do not match

// The first rank that does not agree with the majority; -1 if there is none.
int Collectives::odd_one() const {
  std::map<std::uint64_t, std::vector<int>> callers;
  for (int rank = 0; rank < size_; ++rank) {
    if (const auto call = area_.done(rank).fingerprint_of(call_)) callers[*call].push_back(rank);
  }
  int odd = -1;
  bool majority = false;
  for (const auto& [call, ranks] : callers) {
    if (2 * static_cast<int>(ranks.size()) > size_)
      majority = true;
    else if (odd < 0 || ranks.front() < odd)
      odd = ranks.front();
  }
  return majority ? odd : -1;
}

bool Collectives::all_have_called() const {
  for (int rank = 0; rank < size_; ++rank) {
    if (!area_.done(rank).fingerprint_of(call_)) return false;
  }
  return true;
}

void Collectives::throw_mismatch(int peer, WaitContext& wait) {
  const auto named = [&](int odd) { return odd >= 0 ? fmt::format("rank {} is the odd one; ", odd) : ""; };
  // A rank that compares the calls in words can say more. A rank that counts them knows better which rank differs.
  const Deadline voting = Deadline::after(kVotingTime);
  std::optional<Deadline> words;
  while (!voting.expired() && !(words && words->expired())) {
    if (!words && all_have_called()) words = Deadline::after(kTimeForWords);
    try {
      wait.hurry();
      wait.check();
    } catch (const Error& error) {
      const int odd = odd_one();
      if (error.code() != ErrorCode::mismatch || error.rank() >= 0 || odd < 0) throw;
      throw Error(error.code(), named(odd) + error.message(), error.group(), odd);
    }
    attendant_.attend();
    std::this_thread::sleep_for(kVotingPause);
  }
  const int odd = odd_one();
  throw Error(ErrorCode::mismatch,
              fmt::format("{}rank {} and rank {} have not made the same calls, this one or one before; every rank of a "
                          "group must make the same collective calls in the same order, with the same counts, types "
                          "and roots",
                          named(odd), rank_, peer),
              {}, odd);
}

}  // namespace col::shm_backend
