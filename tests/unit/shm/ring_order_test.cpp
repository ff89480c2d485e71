// A proof by computation of the rings of messages (ring.hpp): their real code runs over a memory that knows who has
// written what, and what comes before what.
//
// Its two ends are in one thread, in all orders of what they do. Whatever order: the consumer's part comes after the
// frame whose first word it has seen, and the producer's after what the consumer had given back when it looked. Nothing
// else orders them. So the consumer may see of a word what was there when it saw the frame before, and all that was
// written since. Found are: accesses that nothing orders, of which one writes; a word that the consumer may take for
// the begin of the next frame, and that is not; frames that come to harm.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <utility>

#include "backend/shm/ring.hpp"
#include "support/catch.hpp"

namespace col::test::ring_order {
namespace {

using namespace shm_backend;

constexpr std::size_t kUnit = sizeof(FrameHeader), kMostUnits = 16;

// What was written into the first word of a unit: nothing of a frame, the first word of frame `frame`, or part of
// a frame.
struct Written {
  enum class What : std::uint8_t { zero, first_word, inside } what = What::zero;
  std::uint32_t frame = 0;  // from 1
  std::uint32_t at = 0;     // which of the producer's accesses
};

struct Unit {
  std::array<Written, 6> word{};  // what the consumer may see, from the oldest to the newest
  std::uint8_t words = 1;
  std::uint32_t written = 0;           // the producer's last access to any of it
  std::uint32_t read = 0, looked = 0;  // the consumer's to any of it, and its last look at the first word, an atomic
};

// What was done so far. A value: runs have beginnings in common.
struct History {
  std::array<Unit, kMostUnits> units{};
  std::uint32_t producer = 0, consumer = 0;              // how many accesses
  std::uint32_t producer_knows = 0, consumer_knows = 0;  // those of the other that come before
  std::uint32_t given_back = 0;                          // the consumer's accesses before that
  std::uint32_t shown = 0, taken = 0;                    // frames
  std::size_t limit = 0;                                 // the producer may write so far
  const char* problem = nullptr;
};

// The ring of all runs, one after the other, and what is known of it.
alignas(64) std::byte memory[kMostUnits * kUnit];
RingIndices indices;
History history;

void found(const char* problem) {
  if (history.problem == nullptr) history.problem = problem;
}

// For the real code in the place of RingMemory.
struct WatchedMemory {
  static void write(std::byte* to, const void* from, std::size_t bytes) noexcept {
    std::memcpy(to, from, bytes);
    ++history.producer;
    const std::size_t begin = offset_of(to);
    for (std::size_t unit = begin / kUnit; unit * kUnit < begin + bytes; ++unit) {
      wrote(unit);
      if (unit * kUnit < begin) continue;
      if (history.units[unit].looked > history.producer_knows) found("writes what may still be looked at");
      add(unit, {Written::What::inside, history.shown + 1, history.producer});
    }
    if (begin + bytes > history.limit) found("writes where it has no memory");
  }
  static void clear(std::byte* word) noexcept { store(word, 0, Written::What::zero); }
  static void show(std::byte* word, std::uint64_t value) noexcept {
    store(word, value, Written::What::first_word);
    ++history.shown;
  }
  static void give_back(RingIndices& of, std::uint64_t head) noexcept {
    of.head.store(head, std::memory_order_relaxed);
    history.given_back = ++history.consumer;
  }
  static std::uint64_t head(const RingIndices& of) noexcept {
    history.producer_knows = std::max(history.producer_knows, history.given_back);
    return of.head.load(std::memory_order_relaxed);
  }

  static void read(void* to, const std::byte* from, std::size_t bytes, core::Stores /*stores*/) noexcept {
    std::memcpy(to, from, bytes);
    ++history.consumer;
    const std::size_t begin = offset_of(from);
    for (std::size_t unit = begin / kUnit; unit * kUnit < begin + bytes; ++unit) {
      if (history.units[unit].written > history.consumer_knows) found("reads what may not be there yet");
      history.units[unit].read = history.consumer;
    }
  }
  static bool is_there(std::byte* word) noexcept {
    Unit& unit = history.units[offset_of(word) / kUnit];
    unit.looked = ++history.consumer;
    const std::uint32_t next = history.taken + 1;
    // What comes before all that the consumer knows can no longer be seen.
    std::size_t oldest = 0;
    for (std::size_t i = 1; i < unit.words; ++i) {
      if (unit.word[i].at <= history.consumer_knows) oldest = i;
    }
    for (std::size_t i = oldest; i < unit.words; ++i) {
      const Written& seen = unit.word[i];
      if (seen.what == Written::What::inside) found("may take what is inside of a frame for the next one");
      if (seen.what == Written::What::first_word && seen.frame != next) found("may take a frame for another one");
    }
    const Written& last = unit.word[unit.words - 1U];
    if (last.what == Written::What::zero) return false;
    history.consumer_knows = std::max(history.consumer_knows, last.at);
    return true;
  }

 private:
  static std::size_t offset_of(const std::byte* place) { return static_cast<std::size_t>(place - memory); }
  static void store(std::byte* word, std::uint64_t value, Written::What what) {
    std::memcpy(word, &value, sizeof value);
    ++history.producer;
    wrote(offset_of(word) / kUnit);
    add(offset_of(word) / kUnit, {what, history.shown + 1, history.producer});
    if (offset_of(word) + sizeof value > history.limit) found("writes where it has no memory");
  }
  static void wrote(std::size_t unit) {
    if (history.units[unit].read > history.producer_knows) found("writes what may still be read");
    history.units[unit].written = history.producer;
  }
  static void add(std::size_t unit, const Written& written) {
    Unit& of = history.units[unit];
    if (of.words == of.word.size()) {
      std::move(of.word.begin() + 1, of.word.end(), of.word.begin());
      --of.words;
    }
    of.word[of.words++] = written;
  }
};

using RealProducer = ProducerOver<WatchedMemory>;

class RealConsumer : public ConsumerOver<WatchedMemory> {
 public:
  using ConsumerOver::ConsumerOver;
  FrameHeader take(std::byte* payload) {
    const FrameHeader header = front();
    read(payload, header.payload_bytes);
    pop(header);
    return header;
  }
};

// ---- All orders

constexpr std::array<std::size_t, 4> kPayloads = {0, 8, kUnit, kUnit + 8};

enum class Act : std::uint8_t { put_none, put_word, put_unit, put_more, clear_ahead, claim, take, release };
constexpr int kActs = 8;

template <class Producer, class Consumer>
class Search {
 public:
  // `units`: of the ring; `claimed`: so many bytes of it may be written at first.
  Search(std::size_t units, std::size_t claimed) : bytes_(units * kUnit) {
    history = {.limit = claimed};
    indices.head = 0;
    std::memset(memory, 0, sizeof memory);
    ends_ = {Producer(indices, memory, bytes_), Consumer(indices, memory, bytes_)};
  }

  // All orders of so many acts, up to the first problem. Returns how many.
  std::uint64_t descend(int depth) {
    if (depth == 0) return 1;
    const Moment moment(ends_);
    std::uint64_t orders = 0;
    for (int act = 0; act < kActs; ++act) {
      if (does(static_cast<Act>(act)) && history.problem == nullptr) orders += descend(depth - 1);
      if (history.problem != nullptr) return orders;
      moment.restore(ends_);
    }
    return orders;
  }
  // Returns how many of so many random acts could be done.
  int wander(std::uint64_t seed, int acts) {
    std::mt19937_64 random(seed);
    int done = 0;
    for (int i = 0; i < acts && history.problem == nullptr; ++i)
      done += does(static_cast<Act>(std::uniform_int_distribution(0, kActs - 1)(random))) ? 1 : 0;
    return done;
  }
  static std::string problem() { return history.problem != nullptr ? history.problem : ""; }

 private:
  struct Ends {
    Producer producer;
    Consumer consumer;
  };
  class Moment {
   public:
    explicit Moment(const Ends& ends) : ends_(ends) { std::memcpy(bytes_.data(), memory, sizeof memory); }
    void restore(Ends& ends) const {
      ends = ends_;
      std::memcpy(memory, bytes_.data(), sizeof memory);
      indices.head = head_;
      history = history_;
    }

   private:
    const Ends ends_;
    std::array<std::byte, sizeof memory> bytes_;
    const std::uint64_t head_ = indices.head;
    const History history_ = history;
  };

  // Returns whether it can be done.
  bool does(Act act) {
    switch (act) {
      case Act::clear_ahead:
        ends_.producer.clear_ahead(history.limit);
        break;
      case Act::claim:
        if (history.limit == bytes_) return false;
        history.limit = bytes_;
        break;
      case Act::take:
        if (!takes()) return false;
        break;
      case Act::release:
        if (ends_.consumer.unreleased() == 0) return false;
        ends_.consumer.release();
        break;
      default:
        if (!puts(kPayloads[static_cast<std::size_t>(act)])) return false;
    }
    // A consumer looks all the time.
    if (ends_.consumer.is_there() != (history.shown > history.taken))
      found("a frame is not seen, or seen where none is");
    return true;
  }

  bool puts(std::size_t payload) {
    if (ends_.producer.end_of(payload) > history.limit || !ends_.producer.fits(payload)) return false;
    std::array<std::byte, 2 * kUnit> data;
    data.fill(static_cast<std::byte>(history.shown + 1));
    ends_.producer.put({.kind = FrameKind::eager,
                        .payload_bytes = static_cast<std::uint32_t>(payload),
                        .slot = ~std::uint64_t{0},
                        .bytes = ~std::uint64_t{0},
                        .id = history.shown + 1},
                       data.data());
    return true;
  }

  bool takes() {
    if (history.taken == history.shown) return false;
    std::array<std::byte, 2 * kUnit> payload{};
    const FrameHeader header = ends_.consumer.take(payload.data());
    const auto next = history.taken + 1;
    if (header.kind != FrameKind::eager || header.id != next || header.payload_bytes > payload.size())
      found("a frame has come to harm");
    for (std::size_t i = 0; i < std::min<std::size_t>(header.payload_bytes, payload.size()); ++i) {
      if (payload[i] != static_cast<std::byte>(next)) found("a payload has come to harm");
    }
    ++history.taken;
    return true;
  }

  std::size_t bytes_;
  Ends ends_;
};

struct Finding {
  std::string problem;
  std::uint64_t orders = 0;
};

template <class Producer, class Consumer = RealConsumer>
Finding find(int depth) {
  Finding finding;
  for (const std::size_t units : {4, 8}) {
    for (const std::size_t claimed : {units * kUnit, units * kUnit / 2}) {
      Search<Producer, Consumer> search(units, claimed);
      finding.orders += search.descend(depth);
      finding.problem = search.problem();
      if (!finding.problem.empty()) return finding;
    }
  }
  return finding;
}

template <class Producer, class Consumer = RealConsumer>
std::string problem_of() {
  return find<Producer, Consumer>(9).problem;
}

// ---- Planted bugs

struct ClearsAfterItShows : RealProducer {
  using RealProducer::RealProducer;
  void put(const FrameHeader& header, const void* payload) {
    cleared_ = tail_ + frame_bytes(header.payload_bytes);  // so that it does not
    RealProducer::put(header, payload);
    clear(tail_);
  }
};
struct NeverClears : RealProducer {
  using RealProducer::RealProducer;
  void put(const FrameHeader& header, const void* payload) {
    cleared_ = tail_ + frame_bytes(header.payload_bytes);
    RealProducer::put(header, payload);
  }
};
// A longer frame than was expected has written over the word that was cleared, and ends behind it.
struct TrustsAnyWordThatWasCleared : RealProducer {
  using RealProducer::RealProducer;
  void put(const FrameHeader& header, const void* payload) {
    if (cleared_ != 0 && cleared_ >= tail_) cleared_ = tail_ + frame_bytes(header.payload_bytes);
    RealProducer::put(header, payload);
  }
};
struct ClearsWithoutRoom : RealProducer {
  using RealProducer::RealProducer;
  void clear_ahead(std::size_t claimed) {
    const std::uint64_t ahead = tail_ + frame_bytes(sizeof(std::uint64_t));
    if ((ahead & (ring_bytes_ - 1)) + sizeof(std::uint64_t) > claimed) return;
    clear(ahead);
    cleared_ = ahead;
  }
};
struct ClearsTheFirstUnread : RealProducer {
  using RealProducer::RealProducer;
  void clear_ahead(std::size_t claimed) {
    const std::uint64_t ahead = tail_ + frame_bytes(sizeof(std::uint64_t));
    if (ahead - head_ > ring_bytes_ || (ahead & (ring_bytes_ - 1)) + sizeof(std::uint64_t) > claimed) return;
    clear(ahead);
    cleared_ = ahead;
  }
};
struct ClearsWhereItHasNoMemory : RealProducer {
  using RealProducer::RealProducer;
  void clear_ahead(std::size_t /*claimed*/) { RealProducer::clear_ahead(ring_bytes_); }
};
struct NotesWhatItHasNotCleared : RealProducer {
  using RealProducer::RealProducer;
  void clear_ahead(std::size_t claimed) {
    RealProducer::clear_ahead(claimed);
    cleared_ = tail_ + frame_bytes(sizeof(std::uint64_t));
  }
};
struct WritesThePayloadAfterItShows : RealProducer {
  using RealProducer::RealProducer;
  void put(const FrameHeader& header, const void* payload) {
    const std::uint64_t begin = tail_;
    RealProducer::put(header, nullptr);
    if (header.payload_bytes > 0) write(begin + sizeof header, payload, header.payload_bytes);
  }
};
struct ForgetsTheWordAfterIt : RealProducer {
  using RealProducer::RealProducer;
  bool fits(std::size_t payload_bytes) {
    RealProducer::fits(payload_bytes);
    return ring_bytes_ - (tail_ - head_) >= frame_bytes(payload_bytes);
  }
};
struct GivesBackBeforeItReads : RealConsumer {
  using RealConsumer::RealConsumer;
  FrameHeader take(std::byte* payload) {
    const FrameHeader header = front();
    const std::uint64_t begin = head_;
    pop(header);
    release();
    const std::uint64_t end = std::exchange(head_, begin);
    read(payload, header.payload_bytes);
    head_ = end;
    return header;
  }
};

}  // namespace

TEST_CASE("ring order: a frame is seen whole, once, and after the one before, in any order of what both ends do",
          "[shm]") {
  const Finding finding = find<RealProducer>(10);
  CHECK(finding.problem == "");
  CHECK(finding.orders > 1'000'000);
}

TEST_CASE("ring order: many times around", "[shm]") {
  const std::uint64_t seed = std::random_device{}();
  INFO("seed " << seed);
  for (const std::size_t units : {4, 8, 16}) {
    Search<RealProducer, RealConsumer> search(units, units * kUnit / 2);
    CHECK(search.wander(seed + units, 300'000) > 50'000);
    CHECK(search.problem() == "");
  }
}

TEST_CASE("ring order: planted bugs are found", "[shm]") {
  CHECK(problem_of<ClearsAfterItShows>() != "");
  CHECK(problem_of<NeverClears>() != "");
  CHECK(problem_of<TrustsAnyWordThatWasCleared>() != "");
  CHECK(problem_of<ClearsWithoutRoom>() != "");
  CHECK(problem_of<ClearsTheFirstUnread>() != "");
  CHECK(problem_of<ClearsWhereItHasNoMemory>() == "writes where it has no memory");
  CHECK(problem_of<NotesWhatItHasNotCleared>() != "");
  CHECK(problem_of<WritesThePayloadAfterItShows>() == "reads what may not be there yet");
  CHECK(problem_of<ForgetsTheWordAfterIt>() != "");
  CHECK(problem_of<RealProducer, GivesBackBeforeItReads>() == "writes what may still be read");
}

}  // namespace col::test::ring_order
