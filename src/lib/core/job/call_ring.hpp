// The calls of a rank, as it writes them: one entry each, in the ring of its part of the control page. Everything that
// tells of calls reads it: a rank's record, coljob, and who compares times. A call of a few bytes takes less than
// twenty times what its entry takes, so the writer is inline.
//
// Writer: the words of the entry (release); then how many entries there are (release). A call that may end in a moment
// has its entry from its begin on, in state `running`. At its end, it gets the time, and in the end its state
// (release). Reader: how many there are (acquire); the words (acquire); then again how many there are. Entries in whose
// places others have come, or one may be coming, do not count (kReadable). There is no locked instruction: it would
// wait until what the call has stored before can be seen by others. Two threads that begin calls of two groups in the
// same moment may have one entry: then the one that ends first may be lost.
#pragma once

#include <cstddef>
#include <cstdint>

#include <col/job.hpp>

#include "core/clock/clock.hpp"
#include "core/job/page.hpp"
#include "core/job/record_words.hpp"

namespace col::core {

class CallRing {
 public:
  static constexpr std::uint64_t kPlaces = RankRecord::kRecordedCalls;
  // One place is kept for the entry that comes next.
  static constexpr std::uint64_t kReadable = kPlaces - 1;

  // An operation in the ring's words, but for its number and state: made once for one that comes again.
  struct Words {
    std::uint64_t call = 0, partner_and_tag = 0, elements = 0;
  };
  // `group`: as of RankRecord::enter_group().
  static Words words(int group, Collective op, const CallDetails& details) noexcept {
    return {pack_entry(0, op, group, EntryState::none),
            pack(static_cast<std::uint32_t>(details.partner),
                 is_message(op) ? static_cast<std::uint32_t>(details.tag) : pack_method(details)),
            pack_elements(details)};
  }

  explicit CallRing(RankRecord& record) noexcept : ring_(*record.recorder_), record_(*record.layout_) {}

  // A call begins that may end in a moment. Returns the number of its entry, for end() or take_back().
  [[gnu::always_inline]] std::uint64_t begin(const Words& words, std::uint64_t sequence) noexcept {
    const std::uint64_t number = next();
    fill(number, words, sequence, EntryState::running);
    publish(number);
    return number;
  }

  // It has ended, and its record still says nothing of it. `took_ns`: of a long one; else 0.
  [[gnu::always_inline]] void end(std::uint64_t number, const Words& words, std::uint64_t sequence,
                                  std::uint64_t took_ns = 0) noexcept {
    RingEntry& entry = at(number);
    // Another thread's call may have its place, if it was begun in the same moment, or a thousand calls ago.
    if (entry.call.load(std::memory_order_relaxed) != with(words.call, sequence, EntryState::running)) [[unlikely]]
      return static_cast<void>(add(words, sequence, EntryState::brief, took_ns));
    stamp(entry, took_ns);
    entry.call.store(with(words.call, sequence, took_ns != 0 ? EntryState::brief_timed : EntryState::brief),
                     std::memory_order_release);
    raise_last(words.call, sequence);
  }

  // It waits: RankRecord::begin() has said so, and its entry comes when it ends.
  void take_back(std::uint64_t number, const Words& words, std::uint64_t sequence) noexcept {
    RingEntry& entry = at(number);
    // As in end().
    if (entry.call.load(std::memory_order_relaxed) != with(words.call, sequence, EntryState::running)) return;
    // The entry of another thread's call may come just now: it must not be lost. A locked instruction is nothing beside
    // a wait. The word stays: a reader that has counted this entry still sees a call that is under way, and comes back.
    std::uint64_t last = number + 1;
    if (!ring_.entries.compare_exchange_strong(last, number, std::memory_order_acq_rel))
      return entry.call.store(0, std::memory_order_release);
    // Another thread's call may be told of just now, too.
    std::uint64_t told = record_.entries.load(std::memory_order_relaxed);
    if (told > number) record_.entries.compare_exchange_strong(told, number, std::memory_order_acq_rel);
  }

  // True if RankRecord::begin() has told of a call since that entry was written.
  bool has_record_since(std::uint64_t number) const noexcept {
    return record_.entries.load(std::memory_order_relaxed) > number;
  }

  // An operation has ended, or was started for the rank to wait for later. `took_ns`: of one that has waited, or is a
  // long one; else 0. Returns the number of its entry.
  [[gnu::noinline]] std::uint64_t add(const Words& words, std::uint64_t sequence, EntryState state,
                                      std::uint64_t took_ns = 0) noexcept {
    const std::uint64_t number = next();
    stamp(at(number), took_ns);
    const EntryState timed = state == EntryState::brief ? EntryState::brief_timed : EntryState::timed;
    fill(number, words, sequence, took_ns != 0 ? timed : state);
    raise_last(words.call, sequence);
    publish(number);
    return number;
  }

  // For `took_ns`. The clock may have gone back.
  static std::uint64_t time_since(std::uint64_t began_ns) noexcept {
    const std::uint64_t now = clock_ns();
    return now > began_ns ? now - began_ns : 1;
  }

 private:
  // relaxed: this process's own word.
  std::uint64_t next() const noexcept { return ring_.entries.load(std::memory_order_relaxed); }
  RingEntry& at(std::uint64_t number) noexcept { return ring_.calls[number % kPlaces]; }

  static constexpr std::uint64_t with(std::uint64_t call, std::uint64_t sequence, EntryState state) noexcept {
    return call + pack_entry(sequence, {}, 0, state);
  }

  void stamp(RingEntry& entry, std::uint64_t took_ns) noexcept {
    entry.at_ns.store(coarse_clock_ns(), std::memory_order_release);  // the exact time would cost more than the rest
    if (took_ns == 0) return;
    entry.took_ns.store(took_ns, std::memory_order_release);
    ring_.waited_ns.store(ring_.waited_ns.load(std::memory_order_relaxed) + took_ns, std::memory_order_release);
  }

  void fill(std::uint64_t number, const Words& words, std::uint64_t sequence, EntryState state) noexcept {
    RingEntry& entry = at(number);
    entry.partner_and_tag.store(words.partner_and_tag, std::memory_order_release);
    entry.elements.store(words.elements, std::memory_order_release);
    entry.call.store(with(words.call, sequence, state), std::memory_order_release);
  }

  // Another thread may have added many since the number was read: these must not be lost.
  void publish(std::uint64_t number) noexcept {
    const std::uint64_t before = next();
    if (before > number) return;
    // Others have taken theirs back since: nobody is in these calls.
    for (std::uint64_t taken = before; taken < number; ++taken) at(taken).call.store(0, std::memory_order_release);
    ring_.entries.store(number + 1, std::memory_order_release);
  }

  // Operations end in any order, and a message has the number of the collective before it.
  void raise_last(std::uint64_t call, std::uint64_t sequence) noexcept {
    Word& last = ring_.last[group_of(call)];
    if (sequence > last.load(std::memory_order_relaxed)) last.store(sequence, std::memory_order_release);
  }

  RecorderLayout& ring_;
  RecordLayout& record_;
};

}  // namespace col::core
