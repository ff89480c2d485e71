// What happens before what in a run of ranks that write and read shared places, and order this by counters.
//
// Each rank's part is a straight line of events: nothing it does depends on what it reads. Each counter is written by
// one rank and only grows, and a wait ends when the counter has reached a value. So all runs have the same events, and
// a wait always comes after the first tell() that reached its value, whatever value it sees. That edge is the
// guaranteed one; this computes with it alone, so one run in any order speaks for all of them.
//
// Found are: two accesses to one place that nothing orders, of which one writes; a read of what the step's owner has
// not written before; ranks that wait for ever.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "backend/shm/segment/layout.hpp"

namespace col::test {

enum class CounterKind : std::uint8_t { ready, folded, done };

struct Event {
  enum class Kind : std::uint8_t {
    wait,       // until the counter of `owner` has reached `step`
    wait_done,  // the same for the counter done, unless what learn has read says so already
    tell,       // this rank's own counter reaches `step`
    write,      // part `part` of the data of `owner` in step `step`
    read,
    note,   // this rank's counter done goes into its header: a write
    learn,  // and is read out of the header of `owner`: a read
    look,   // reads what else the header of `owner` says
  };
  Kind kind{};
  CounterKind counter{};
  int owner = 0;
  std::uint64_t step = 0;
  int part = 0;
  shm_backend::Place place = shm_backend::Place::slot;  // of the data

  bool operator==(const Event&) const = default;
};
using Program = std::vector<Event>;

// The state of a run; copied where runs have a beginning in common.
template <int kRanks, int kSlotCount, int kHeaderCount>
class Execution {
  static_assert(kHeaderCount % kSlotCount == 0);

 public:
  // `base`: the step that all ranks have just done.
  explicit Execution(std::uint64_t base) {
    for (Owner& owner : owners_) {
      for (int header = 0; header < kHeaderCount; ++header) owner.ready[header].begin(0), owner.folded[header].begin(0);
      owner.done.begin(base);
    }
    for (Rank& rank : ranks_) rank.seen_done.fill(base);
  }

  // Goes on with one program for each rank, to their ends or to the first problem.
  void run(const std::array<Program, kRanks>& programs) {
    std::array<std::size_t, kRanks> next{};
    for (bool moved = true; moved && problem_.empty();) {
      moved = false;
      for (int rank = 0; rank < kRanks; ++rank) {
        const auto r = static_cast<std::size_t>(rank);
        while (next[r] < programs[r].size() && problem_.empty() && try_event(rank, programs[r][next[r]])) {
          ++next[r];
          ++events_;
          moved = true;
        }
      }
    }
    for (int rank = 0; problem_.empty() && rank < kRanks; ++rank) {
      const auto r = static_cast<std::size_t>(rank);
      if (next[r] < programs[r].size()) problem_ = "waits for ever: " + show(rank, programs[r][next[r]]);
    }
  }

  const std::string& problem() const noexcept { return problem_; }
  std::uint64_t events() const noexcept { return events_; }

 private:
  // By rank: how many of its events come before.
  using Clock = std::array<std::uint32_t, kRanks>;
  static constexpr int kParts = kRanks + 1;  // of data; the last one is what else a header has

  static void join(Clock& clock, const Clock& other) {
    for (std::size_t r = 0; r < kRanks; ++r) clock[r] = std::max(clock[r], other[r]);
  }
  static bool comes_before(const Clock& accesses, const Clock& now) {
    for (std::size_t r = 0; r < kRanks; ++r) {
      if (accesses[r] > now[r]) return false;
    }
    return true;
  }

  // What a counter was told, and what came before that. The oldest are forgotten.
  template <std::size_t kDepth>
  struct Counter {
    struct Tell {
      std::uint64_t value = 0;
      Clock clock{};
    };
    std::array<Tell, kDepth> tells{};
    std::size_t count = 0;
    std::uint64_t forgotten = 0;

    void begin(std::uint64_t value) { tells[0] = {value, {}}, count = 1; }
    std::uint64_t value() const { return tells[count - 1].value; }
    void tell(std::uint64_t value, const Clock& clock) {
      if (count == kDepth) {
        forgotten = tells[0].value;
        std::move(tells.begin() + 1, tells.end(), tells.begin());
        --count;
      }
      tells[count++] = {value, clock};
    }
    // The first tell that reached `value`; null when none has.
    const Tell* first(std::uint64_t value) const {
      for (std::size_t i = 0; i < count; ++i) {
        if (tells[i].value >= value) return &tells[i];
      }
      return nullptr;
    }
  };

  // By rank, its last access: what comes after the last comes after all.
  struct Accesses {
    Clock writes{}, reads{};
  };
  struct StepAccesses {
    std::uint64_t step = 0;
    std::array<Accesses, kParts> parts{};
    Accesses all{};
  };
  // Parts are cut anew in each step, so accesses of two steps are taken to touch the same bytes.
  struct Memory {
    StepAccesses newest, before;
    Accesses older{};
    std::uint64_t noted_done = 0;
  };
  struct Owner {
    std::array<Counter<4>, kHeaderCount> ready, folded;
    Counter<64> done;
    std::array<Memory, kHeaderCount> headers{}, parts{};  // part i is in slot i mod kSlotCount
  };
  struct Rank {
    Clock clock{};
    std::array<std::uint64_t, kRanks> seen_done{};
  };

  template <std::size_t kDepth>
  bool try_wait(int rank, const Event& event, const Counter<kDepth>& counter) {
    const auto* const tell = counter.first(event.step);
    if (tell == nullptr) return false;
    if (event.step <= counter.forgotten && counter.forgotten != 0)
      problem_ = "waits for what is long past: " + show(rank, event);
    join(ranks_[static_cast<std::size_t>(rank)].clock, tell->clock);
    return true;
  }

  template <std::size_t kDepth>
  void tell(int rank, const Event& event, Counter<kDepth>& counter) {
    if (counter.value() > event.step) problem_ = "a counter goes back: " + show(rank, event);
    counter.tell(event.step, ranks_[static_cast<std::size_t>(rank)].clock);
  }

  bool try_event(int rank, const Event& event) {
    Rank& own = ranks_[static_cast<std::size_t>(rank)];
    Owner& owner = owners_[static_cast<std::size_t>(event.owner)];
    const auto index = static_cast<std::size_t>(event.step % kHeaderCount);
    Memory& header = owner.headers[index];
    std::uint64_t& seen = own.seen_done[static_cast<std::size_t>(event.owner)];
    ++own.clock[static_cast<std::size_t>(rank)];
    switch (event.kind) {
      case Event::Kind::wait_done:
        if (seen >= event.step) return true;
        if (!try_wait(rank, event, owner.done)) return false;
        seen = event.step;
        return true;
      case Event::Kind::wait:
        return try_wait(rank, event, event.counter == CounterKind::ready ? owner.ready[index] : owner.folded[index]);
      case Event::Kind::tell:
        if (event.counter == CounterKind::done)
          tell(rank, event, owner.done);
        else
          tell(rank, event, event.counter == CounterKind::ready ? owner.ready[index] : owner.folded[index]);
        return true;
      case Event::Kind::note:
        header.noted_done = owner.done.value() + static_cast<std::uint64_t>(event.part);
        access(rank, event, header, kRanks, true);
        return true;
      case Event::Kind::learn:
        access(rank, event, header, kRanks, false);
        seen = std::max(seen, header.noted_done);
        return true;
      case Event::Kind::look:
        access(rank, event, header, kRanks, false);
        return true;
      default:
        access_data(rank, event, owner, event.kind == Event::Kind::write);
        return true;
    }
  }

  // Of a slot, all its parts are touched.
  void access_data(int rank, const Event& event, Owner& owner, bool writes) {
    const auto index = static_cast<std::size_t>(event.step % kHeaderCount);
    if (event.place == shm_backend::Place::header) return access(rank, event, owner.headers[index], event.part, writes);
    if (event.place == shm_backend::Place::part) return access(rank, event, owner.parts[index], event.part, writes);
    for (std::size_t part = index % kSlotCount; part < kHeaderCount && problem_.empty(); part += kSlotCount)
      access(rank, event, owner.parts[part], event.part, writes);
  }

  void access(int rank, const Event& event, Memory& place, int part, bool writes) {
    if (event.step > place.newest.step) {
      join(place.older.writes, place.before.all.writes);
      join(place.older.reads, place.before.all.reads);
      place.before = place.newest;
      place.newest = {.step = event.step};
    }
    if (event.step < place.before.step) {
      problem_ = "touches a place that has long been used again: " + show(rank, event);
      return;
    }
    const bool is_newest = event.step == place.newest.step;
    StepAccesses& same = is_newest ? place.newest : place.before;
    Accesses& here = same.parts[static_cast<std::size_t>(part)];
    const Clock& now = ranks_[static_cast<std::size_t>(rank)].clock;
    for (const Accesses* other : {&place.older, &(is_newest ? place.before : place.newest).all, &here}) {
      if (comes_before(other->writes, now) && (!writes || comes_before(other->reads, now))) continue;
      problem_ = "nothing orders it with another access: " + show(rank, event);
      return;
    }
    if (!writes && here.writes == Clock{}) problem_ = "reads what nobody has written: " + show(rank, event);
    const auto r = static_cast<std::size_t>(rank);
    (writes ? here.writes : here.reads)[r] = now[r];
    (writes ? same.all.writes : same.all.reads)[r] = now[r];
  }

  static std::string show(int rank, const Event& event) {
    constexpr std::array kKinds = {"wait", "wait_done", "tell", "write", "read", "note", "learn", "look"};
    constexpr std::array kCounters = {"ready", "folded", "done"};
    return fmt::format("rank {}: {} {} of rank {}, step {}, part {}", rank,
                       kKinds[static_cast<std::size_t>(event.kind)], kCounters[static_cast<std::size_t>(event.counter)],
                       event.owner, event.step, event.part);
  }

  std::array<Owner, kRanks> owners_;
  std::array<Rank, kRanks> ranks_;
  std::string problem_;
  std::uint64_t events_ = 0;
};

}  // namespace col::test
