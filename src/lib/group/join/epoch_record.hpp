// The register of a group: one value that says which epoch there is, who is in it, and which one comes next.
//
//   open(e) ── over(e) ── decided(e+1) ─┬─ open(e+1) ── over(e+1) ── …
//                    │                  ├─ void(e+1) ── decided(e+2) ── …
//                    └──────────────────┴─ failed(e+1) ── decided(e+2) ── …
//
// It changes by compare_set alone, from one of these to one that follows it. So all processes that read it, however
// late, read values of one history, in which a value never comes again: epochs have one record each, and no two of them
// are open. On one host the register is on the control page; over hosts it is a key of the job's store.
//
// A process is known by its incarnation, a random number that it draws anew each time it joins. So a process that was
// left out and joins again is another one, and nothing of the first is taken for the second.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace col::group {

using Incarnation = std::uint64_t;

// A member of an epoch. Its number is its place in the record.
struct Seat {
  Incarnation incarnation = 0;
  int before = -1;  // its number in the last epoch that was open; -1: it is new
  std::uint64_t progress = 0;
  std::string address = {};

  bool operator==(const Seat&) const = default;
};

// A member of the last epoch that was open, and is in none after it.
struct LostSeat {
  Incarnation incarnation = 0;
  int number = -1;           // in that epoch
  bool is_excluded = false;  // the program has left it out; else somebody has seen its end

  bool operator==(const LostSeat&) const = default;
};

// The last epoch that was open, as the next one follows from it.
struct Generation {
  std::uint64_t epoch = 0;
  std::vector<Incarnation> members = {};  // by number

  // Its number; -1: it is not in it.
  int number_of(Incarnation incarnation) const;
  bool operator==(const Generation&) const = default;
};

struct EpochRecord {
  // In the order in which they come for one epoch; of the three in the middle there is one at most.
  enum class Phase { decided, open, void_, failed, over };

  std::uint64_t epoch = 0;
  Phase phase = Phase::open;
  std::uint64_t base = 0;   // the last epoch that was open before this one
  std::uint64_t token = 0;  // of the connections: equal on all members, and on nothing else ever
  // By number. Failed before it was decided: those of the last epoch that was open.
  std::vector<Seat> members = {};
  std::vector<LostSeat> lost = {};            // since the last epoch that was open; by their numbers in it
  std::vector<Incarnation> passed_over = {};  // they wait to join, and did not come in time when they were taken
  std::string error = {};                     // failed: the same for all, from encode_error()

  bool operator==(const EpochRecord&) const = default;

  // Grows with each change of the register.
  std::uint64_t version() const;
  int number_of(Incarnation incarnation) const;  // -1: it is no member
  bool has_lost(Incarnation incarnation) const;
  // The epoch from which the next one is made.
  Generation generation() const;
  // Facts for the members of an epoch that is open. source(): the lowest of the survivors with the most progress, as a
  // newcomer has no state that others could want; in a group without survivors the first rank.
  std::vector<int> newcomers() const;
  int source() const;

  // The texts in the register. Equal records have equal texts, as compare_set needs it. Throws internal if `text` is
  // not from encode().
  std::string encode() const;
  static EpochRecord decode(std::string_view text);
};

// Never changes, and shared: each change of an epoch holds a few of them, some of them equal.
using RecordPtr = std::shared_ptr<const EpochRecord>;

// A process says this to the others, in one key that is its own: its next word takes the place of the last one.
struct Presence {
  Incarnation incarnation = 0;
  std::uint64_t round = 0;    // the epoch that it is here for; 0: it waits to join
  bool is_connected = false;  // under the record of that epoch
  std::int64_t ticket = -1;   // its place among those who wait to join, lowest first; -1: it is a member
  std::uint64_t progress = 0;
  std::string address = {};
  int size = 0, min = 1;                   // as its caller wants it; must be equal, as must be:
  std::vector<Incarnation> excluded = {};  // ascending

  bool operator==(const Presence&) const = default;
  bool wants_the_same(const Presence& other) const {
    return size == other.size && min == other.min && excluded == other.excluded;
  }
  std::string encode() const;
  static Presence decode(std::string_view text);
};

// The record of the first epoch, 0, in which all are new.
EpochRecord first_epoch(std::vector<Seat> members, std::uint64_t token);
// The same epoch in a later phase.
EpochRecord in_phase(const EpochRecord& record, EpochRecord::Phase phase);

}  // namespace col::group
