// The twin of the proof in steps_test.cpp, with ranks that fail: lending.hpp between two meetings of steps.hpp, as
// small programs in all interleavings. Each rank's program is recorded from that code, once to its end and once for
// each point at which a wait or a look can end it, where the exception takes its course.
//
// An instruction is one access to memory, in the order of the code. What keeps processors to that order is said where
// the accesses are made; the faults below show what each of these orders is good for.
#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "backend/shm/native/lending.hpp"
#include "backend/shm/native/steps.hpp"
#include "backend/shm/segment/layout.hpp"
#include "support/catch.hpp"
#include "support/protocol/state_space.hpp"

using namespace col::test;
namespace shm = col::shm_backend;

namespace {

enum class Fault {
  none,
  looks_no_more_after_work,
  looks_before_the_last_access,
  passes_while_the_end_is_written,
  gives_back_before_it_ends_the_group,
  never_says_that_it_works,
  looks_before_it_says_that_it_works,
  is_idle_before_the_last_access,
  takes_nothing_back,
};

struct Setting {
  int size = 2;
  bool writes = false;  // into one another's memory (SymmetricCollective); else they only read (CmaCollective)
  int failing = 1;      // so many ranks, the first ones, may fail at any moment
  Fault fault = Fault::none;
};

// ---- What a rank does, recorded

struct Event {
  enum class Kind {
    tell_ready,
    wait_ready,
    begin_work,
    end_work,
    look,
    rest,
    read,
    write,
    look_after_work,
    claim_end,
    write_end,
    wait_idle,
    detach,
    give_back,
    succeed
  };
  Kind kind{};
  int peer = 0;
  std::uint8_t step = 0;

  bool can_fail() const {
    return kind == Kind::wait_ready || kind == Kind::look || kind == Kind::rest || kind == Kind::look_after_work ||
           kind == Kind::wait_idle;
  }
};
using Path = std::vector<std::size_t>;  // which events fail

class Recorder {
 public:
  using Kind = Event::Kind;

  Recorder(const Setting& setting, int rank, Path failures)
      : setting_(setting), rank_(rank), failures_(std::move(failures)) {}

  std::vector<Event> run() {
    try {
      meet(1);
      shm::work_on_others(*this);
      meet(2);
      add(Kind::succeed);
    } catch (const Failed&) {
      if (is(Fault::gives_back_before_it_ends_the_group)) add(Kind::give_back);
      add(Kind::claim_end);
      add(Kind::write_end);
      if (setting_.writes && !is(Fault::takes_nothing_back)) shm::take_back(*this, rank_, setting_.size);
      add(Kind::give_back);
    }
    return std::move(events_);
  }

  // A Port of Course.
  bool wait_done(std::uint64_t) { return true; }
  void put(std::uint64_t, std::uint64_t) {}
  void tell_ready(std::uint64_t step) { add(Kind::tell_ready, rank_, step); }
  bool wait_ready(int peer, std::uint64_t step) {
    demand(add(Kind::wait_ready, peer, step));
    return true;
  }
  bool wait_folded(int, std::uint64_t) { return true; }
  void fold(std::uint64_t, std::uint64_t) {}
  void tell_folded(std::uint64_t) {}
  void take(std::uint64_t, std::uint64_t, int) {}
  void tell_done(std::uint64_t) {}

  // A Port of work_on_others() and take_back().
  void begin_work() {
    if (!is(Fault::never_says_that_it_works) && !is(Fault::looks_before_it_says_that_it_works)) add(Kind::begin_work);
  }
  void look() {
    demand(add(Kind::look));
    if (is(Fault::looks_before_it_says_that_it_works)) add(Kind::begin_work);
  }
  void work() {
    for (int i = 1; i < setting_.size; ++i) {
      const int peer = (rank_ + i) % setting_.size;
      access(peer);
      demand(add(Kind::rest));
      const bool late = is(Fault::looks_before_the_last_access) || is(Fault::is_idle_before_the_last_access);
      if (i + 1 < setting_.size || !late) access(peer);
    }
    if (is(Fault::is_idle_before_the_last_access)) {
      end_work();
      access(last_peer());
    }
  }
  void look_after_work() {
    if (!is(Fault::looks_no_more_after_work)) demand(add(Kind::look_after_work));
    if (is(Fault::looks_before_the_last_access)) access(last_peer());
  }
  void end_work() { add(Kind::end_work); }
  bool wait_idle(int peer) { return add(Kind::wait_idle, peer); }
  void detach() { add(Kind::detach); }

 private:
  struct Failed {};

  bool is(Fault fault) const { return setting_.fault == fault; }
  int last_peer() const { return (rank_ + setting_.size - 1) % setting_.size; }
  void meet(std::uint64_t step) {
    const shm::Shape shape{rank_, setting_.size, 0};
    shm::Course({shm::pattern_of(shm::Form::between_all, rank_, setting_.size, 0), shape, 1}, step, shm::kHeaders)
        .move_on(*this);
  }
  void access(int peer) { add(setting_.writes ? Kind::write : Kind::read, peer); }
  // False when it fails.
  bool add(Kind kind, int peer = 0, std::uint64_t step = 0) {
    events_.push_back({kind, peer, static_cast<std::uint8_t>(step)});
    return std::find(failures_.begin(), failures_.end(), events_.size() - 1) == failures_.end();
  }
  static void demand(bool went_well) {
    if (!went_well) throw Failed{};
  }

  const Setting setting_;
  const int rank_;
  const Path failures_;
  std::vector<Event> events_;
};

// ---- The same as a program of the model

enum Word : std::size_t { kReady, kWorks, kReturned, kReadTooLate, kDetached, kExpired, kImpatient, kWordsOfRank };
constexpr int kMostRanks = 3;
constexpr std::size_t kEnd = kMostRanks * kWordsOfRank, kBroken = kEnd + 1;
static_assert(kBroken < kModelWords && 2 * kMostRanks <= kModelRanks);
enum End : std::uint8_t { kNone, kWriting, kWritten };

std::uint8_t& word(ModelState& state, int rank, Word which) {
  return state.words[static_cast<std::size_t>(rank) * kWordsOfRank + which];
}

enum class Outcome { goes_on, fails, blocked };

Outcome act(const Event& event, int rank, Fault fault, ModelState& s) {
  const bool expired = word(s, rank, kExpired) != 0;
  const std::uint8_t end = s.words[kEnd];
  const bool is_late = word(s, event.peer, kReturned) != 0 && word(s, event.peer, kDetached) == 0;
  const auto unless_ended = [&](std::uint8_t ended) { return end >= ended || expired; };
  using Kind = Event::Kind;
  switch (event.kind) {
    case Kind::tell_ready:
      word(s, rank, kReady) = event.step;
      break;
    case Kind::wait_ready:
      if (word(s, event.peer, kReady) >= event.step) break;
      return unless_ended(kWritten) ? Outcome::fails : Outcome::blocked;
    case Kind::begin_work:
      word(s, rank, kWorks) = 1;
      break;
    case Kind::end_work:
      word(s, rank, kWorks) = 0;
      break;
    case Kind::rest:
      return unless_ended(kWritten) ? Outcome::fails : Outcome::goes_on;
    case Kind::look:
    case Kind::look_after_work:
      if (unless_ended(kWritten)) return Outcome::fails;
      return end == kWriting && fault != Fault::passes_while_the_end_is_written ? Outcome::blocked : Outcome::goes_on;
    case Kind::read:
      if (is_late) word(s, rank, kReadTooLate) = 1;
      break;
    case Kind::write:
      if (is_late) s.words[kBroken] = 1;
      break;
    case Kind::claim_end:
      if (end != kNone) return Outcome::fails;  // another rank writes it
      s.words[kEnd] = kWriting;
      break;
    case Kind::write_end:
      s.words[kEnd] = kWritten;
      break;
    case Kind::wait_idle:
      if (word(s, event.peer, kWorks) == 0) break;
      return word(s, rank, kImpatient) != 0 ? Outcome::fails : Outcome::blocked;
    case Kind::detach:
      word(s, rank, kDetached) = 1;
      break;
    case Kind::succeed:
      if (word(s, rank, kReadTooLate) != 0) s.words[kBroken] = 1;
      [[fallthrough]];
    case Kind::give_back:
      word(s, rank, kReturned) = 1;
      break;
  }
  return Outcome::goes_on;
}

std::string name(const Event& event) {
  constexpr std::array kNames = {"tells ready for step",
                                 "waits for",
                                 "begins to work",
                                 "ends its work",
                                 "looks",
                                 "rests",
                                 "reads of",
                                 "writes to",
                                 "looks again",
                                 "claims the end",
                                 "writes the end",
                                 "waits for the work of",
                                 "detaches",
                                 "fails",
                                 "reports success"};
  return fmt::format("{} ({}, {})", kNames[static_cast<std::size_t>(event.kind)], event.peer, event.step);
}

// All that a rank may do: a line is what it does, and where it goes on when that fails.
class Lines {
 public:
  Lines(const Setting& setting, int rank) : setting_(setting), rank_(rank) { write({}); }

  ModelProgram program() const {
    ModelProgram program;
    const int end = static_cast<int>(lines_.size());
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      const auto act_here = [line = lines_[i], i, end, rank = rank_, fault = setting_.fault](ModelState& s) {
        if (s.words[kBroken] != 0) return Instruction::kBlocked;  // the promise is: all comes to a stop
        switch (act(line.event, rank, fault, s)) {
          case Outcome::blocked:
            return Instruction::kBlocked;
          case Outcome::fails:
            return line.if_it_fails;
          case Outcome::goes_on:
            break;
        }
        return line.is_last ? end : static_cast<int>(i) + 1;
      };
      program.push_back({name(lines_[i].event), act_here});
    }
    return program;
  }

 private:
  struct Line {
    Event event;
    bool is_last = false;
    int if_it_fails = 0;
  };

  // What comes after the last of these failures; returns where that begins.
  int write(const Path& failures) {
    const std::vector<Event> events = Recorder(setting_, rank_, failures).run();
    const std::size_t begin = lines_.size(), first = failures.empty() ? 0 : failures.back() + 1;
    for (std::size_t i = first; i < events.size(); ++i) lines_.push_back({events[i]});
    lines_.back().is_last = true;
    for (std::size_t i = first; i < events.size(); ++i) {
      const std::size_t line = begin + i - first;
      if (events[i].kind == Event::Kind::claim_end) lines_[line].if_it_fails = static_cast<int>(line) + 2;
      if (!events[i].can_fail()) continue;
      Path longer = failures;
      longer.push_back(i);
      const int elsewhere = write(longer);
      lines_[line].if_it_fails = elsewhere;
    }
    return static_cast<int>(begin);
  }

  const Setting setting_;
  const int rank_;
  std::vector<Line> lines_;
};

// Time, for one rank: its deadline passes, and then its patience in take_back(), each at any moment.
ModelProgram clock_of(int rank, bool expires) {
  const auto pass = [rank](Word which, int next) {
    return [=](ModelState& s) { return word(s, rank, which) = 1, next; };
  };
  ModelProgram program;
  if (expires) program.push_back({fmt::format("the deadline of rank {} passes", rank), pass(kExpired, 1)});
  const int next = static_cast<int>(program.size()) + 1;
  program.push_back({fmt::format("the patience of rank {} ends", rank), pass(kImpatient, next)});
  return program;
}

Exploration explore(const Setting& setting) {
  std::vector<ModelProgram> programs;
  for (int rank = 0; rank < setting.size; ++rank) programs.push_back(Lines(setting, rank).program());
  for (int rank = 0; rank < setting.size; ++rank) {
    if (setting.writes || rank < setting.failing) programs.push_back(clock_of(rank, rank < setting.failing));
  }
  return explore(programs);
}

// How the promise is broken; empty when it is not.
std::string broken(bool writes, Fault fault) {
  for (const Setting& setting :
       {Setting{2, writes, 1, fault}, Setting{2, writes, 2, fault}, Setting{3, writes, 2, fault}}) {
    const Exploration found = explore(setting);
    if (!found.stuck.empty()) return found.stuck;
  }
  return {};
}

}  // namespace

// Up to `most` of `size` ranks may fail.
void explore_all(int size, bool writes, int most) {
  for (int failing = 1; failing <= most; ++failing) {
    const Exploration result = explore({.size = size, .writes = writes, .failing = failing});
    INFO(size << " ranks, " << failing << " may fail: " << result.states << " states");
    UNSCOPED_INFO(result.stuck);
    CHECK(result.stuck == "");
    CHECK(result.ends > 0);
  }
}

TEST_CASE("lending: neither of two ranks reports success that has read memory after its owner's call had failed",
          "[shm]") {
  explore_all(2, false, 2);
}

TEST_CASE("lending: none of three ranks reports success that has read memory after its owner's call had failed",
          "[shm][rest]") {
  explore_all(3, false, 3);
}

TEST_CASE("lending: neither of two ranks writes into memory whose owner's call has failed", "[shm]") {
  explore_all(2, true, 2);
}

TEST_CASE("lending: none of three ranks writes into memory whose owner's call has failed", "[shm][rest]") {
  explore_all(3, true, 2);
}

TEST_CASE("lending: planted bugs are found", "[shm]") {
  for (const Fault fault : {Fault::looks_no_more_after_work, Fault::looks_before_the_last_access,
                            Fault::passes_while_the_end_is_written, Fault::gives_back_before_it_ends_the_group}) {
    const std::string how = broken(false, fault);
    INFO("fault " << static_cast<int>(fault));
    CHECK(how.find("reports success") != std::string::npos);
  }
  for (const Fault fault : {Fault::never_says_that_it_works, Fault::looks_before_it_says_that_it_works,
                            Fault::is_idle_before_the_last_access, Fault::takes_nothing_back}) {
    const std::string how = broken(true, fault);
    INFO("fault " << static_cast<int>(fault));
    CHECK(how.find("writes to") != std::string::npos);
  }
}
