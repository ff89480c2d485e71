// No wake-up is lost between ranks that sleep in a collective and those that tell them: waiter.cpp and doorbell.hpp as
// small programs, in all interleavings. What a rank tells stays in its store buffer for a while, which is a program of
// its own. A nap ends once what was in the buffers when it began has arrived; the sleep after it has no bound here, so
// that it hides nothing.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/protocol/state_space.hpp"

using namespace col::test;

namespace {

enum class Fault {
  none,
  rings_before_it_stores,
  counts_itself_after_the_last_look,
  reads_sleepers_before_it_stores,
  arms_again_before_it_sleeps,
  wakes_without_clearing_the_word,
  takes_no_nap,
  disarms_after_the_nap,
};

constexpr std::uint8_t kAwake = 0, kAsleep = 1;

// Words, by rank: what it has told, its doorbell, whether the kernel has it asleep; and the count of sleepers.
std::size_t told(std::size_t rank) {
  return rank;
}
std::size_t bell(std::size_t rank) {
  return kModelRanks + rank;
}
std::size_t in_kernel(std::size_t rank) {
  return 2 * kModelRanks + rank;
}
constexpr std::size_t kSleepers = 3 * kModelRanks;
// For whom a rank sleeps, plus one.
std::size_t awaited(std::size_t rank) {
  return kSleepers + 1 + rank;
}

// What a rank has told, though others may not see it yet; and what an awaited rank had told when a nap began.
std::size_t stored(std::size_t rank) {
  return awaited(kModelRanks) + rank;
}
std::size_t before_nap(std::size_t rank) {
  return stored(kModelRanks) + rank;
}

// The store buffer of a rank that tells the values from 1 to `last`.
ModelProgram buffer_of(std::size_t rank, std::uint8_t last) {
  ModelProgram program;
  for (std::uint8_t value = 1; value <= last; ++value) {
    program.push_back({"a store is seen by others", [=](ModelState& s) {
                         if (s.words[stored(rank)] < value) return Instruction::kBlocked;
                         s.words[told(rank)] = std::max(s.words[told(rank)], value);
                         return static_cast<int>(value);
                       }});
  }
  return program;
}

// One rank's program, instruction by instruction.
class Writer {
 public:
  Writer(std::size_t rank, std::size_t ranks, Fault fault) : rank_(rank), ranks_(ranks), fault_(fault) {}

  // Waiter::wake_others() after its store.
  void tell(std::uint8_t value) {
    const bool late = fault_ == Fault::rings_before_it_stores || fault_ == Fault::reads_sleepers_before_it_stores;
    last_ = value;
    if (!late) set("tell", stored(rank_), value);
    const std::size_t look = add("look whether somebody sleeps");
    if (fault_ == Fault::reads_sleepers_before_it_stores) set("tell", stored(rank_), value);
    for (std::size_t other = 0; other < ranks_; ++other) {
      if (other != rank_) ring(other);
    }
    const std::size_t end = here();
    act(look, [=](ModelState& s) { return s.words[kSleepers] != 0 ? next(look) : static_cast<int>(end); });
    if (late) set("tell", stored(rank_), value);
  }
  std::uint8_t last() const { return last_; }

  // Waiter::wait_for(), without the looks that come before it sleeps: they only make sleep rarer.
  void wait(std::size_t peer, std::uint8_t value) {
    const std::size_t again = here();
    set("say for whom", awaited(rank_), static_cast<std::uint8_t>(peer + 1));
    if (fault_ != Fault::counts_itself_after_the_last_look) count(+1);
    std::vector<std::size_t> looks;
    const auto look_and_arm = [&] {
      set("arm", bell(rank_), kAsleep);
      looks.push_back(add("look"));
    };
    look_and_arm();
    if (fault_ == Fault::counts_itself_after_the_last_look) count(+1);
    std::vector<std::size_t> rung;  // instructions that find that somebody has rung
    if (fault_ != Fault::takes_no_nap) {
      rung.push_back(sleep(peer, true));
      if (fault_ == Fault::disarms_after_the_nap) {
        set("disarm", bell(rank_), kAwake);
        look_and_arm();
      } else {
        looks.push_back(add("look"));
      }
    }
    if (fault_ == Fault::arms_again_before_it_sleeps) set("arm again", bell(rank_), kAsleep);
    rung.push_back(sleep(peer, false));
    const auto end = static_cast<int>(here());
    set("disarm", bell(rank_), kAwake);
    count(-1);
    const std::size_t look = add("look whether it was for this");
    const auto is_there = [peer, value](const ModelState& s) { return s.words[told(peer)] >= value; };
    for (const std::size_t at : looks) act(at, [=](ModelState& s) { return is_there(s) ? end : next(at); });
    for (const std::size_t at : rung) {
      const std::size_t bell_of = bell(rank_);
      act(at, [=](ModelState& s) { return s.words[bell_of] != kAsleep ? end : next(at); });
    }
    act(look, [=](ModelState& s) { return is_there(s) ? next(look) : static_cast<int>(again); });
  }

  ModelProgram program() && { return std::move(program_); }

 private:
  static int next(std::size_t index) { return static_cast<int>(index) + 1; }
  std::size_t here() const { return program_.size(); }
  std::size_t add(std::string name) {
    program_.push_back({std::move(name), {}});
    return here() - 1;
  }
  template <class Act>
  void act(std::size_t index, Act act) {
    program_[index].act = act;
  }
  void set(const std::string& name, std::size_t word, std::uint8_t value) {
    const std::size_t index = add(name);
    act(index, [=](ModelState& s) { return s.words[word] = value, next(index); });
  }
  // Returns the instruction after it, which finds out whether somebody has rung.
  std::size_t sleep(std::size_t peer, bool is_nap) {
    const std::size_t enter = add(is_nap ? "ask the kernel for a nap" : "ask the kernel for sleep");
    const std::size_t asleep = add(is_nap ? "nap" : "sleep"), after = add("see whether it was rung");
    const std::size_t rank = rank_;
    // One step, as the kernel looks at the word and enqueues the sleeper under one lock.
    act(enter, [=](ModelState& s) {
      s.words[before_nap(rank)] = s.words[stored(peer)];
      if (s.words[bell(rank)] != kAsleep) return next(asleep);
      s.words[in_kernel(rank)] = 1;
      return next(enter);
    });
    act(asleep, [=](ModelState& s) {
      // A nap that ends for no reason, or for a ring from before, begins again.
      const bool has_arrived = s.words[told(peer)] >= s.words[before_nap(rank)];
      const bool is_rung = s.words[in_kernel(rank)] == 0 && (!is_nap || s.words[bell(rank)] != kAsleep);
      if (!is_rung && !(is_nap && has_arrived)) return Instruction::kBlocked;
      s.words[in_kernel(rank)] = 0;
      return next(asleep);
    });
    return after;
  }
  // An atomic operation of this kind waits until the rank's own stores are seen.
  void count(int change) {
    const std::size_t index = add(change > 0 ? "count itself among the sleepers" : "count itself no more");
    act(index, [=, rank = rank_](ModelState& s) {
      s.words[told(rank)] = s.words[stored(rank)];
      s.words[kSleepers] = static_cast<std::uint8_t>(s.words[kSleepers] + change);
      return next(index);
    });
  }
  // Doorbell::ring().
  void ring(std::size_t other) {
    const std::size_t whose = add("look for whom it sleeps");
    const std::size_t load = add("look at a doorbell"), exchange = add("ring it"), wake = add("wake the sleeper");
    const int end = next(wake);
    const bool clears = fault_ != Fault::wakes_without_clearing_the_word;
    const auto mine = static_cast<std::uint8_t>(rank_ + 1);
    act(whose, [=](ModelState& s) { return s.words[awaited(other)] == mine ? next(whose) : end; });
    act(load, [=](ModelState& s) { return s.words[bell(other)] == kAsleep ? next(load) : end; });
    act(exchange, [=](ModelState& s) {
      const bool was_asleep = s.words[bell(other)] == kAsleep;
      if (clears) s.words[bell(other)] = kAwake;
      return was_asleep ? next(exchange) : end;
    });
    act(wake, [=](ModelState& s) { return s.words[in_kernel(other)] = 0, end; });
  }

  const std::size_t rank_, ranks_;
  const Fault fault_;
  std::uint8_t last_ = 0;  // the last value that it tells
  ModelProgram program_;
};

using Script = void (*)(Writer& writer, std::size_t rank, std::size_t ranks);

// Ranks that go from step to step together: each tells the others, then waits for all of them.
template <std::uint8_t kRounds>
void in_step(Writer& writer, std::size_t rank, std::size_t ranks) {
  for (std::uint8_t round = 1; round <= kRounds; ++round) {
    writer.tell(round);
    for (std::size_t peer = 0; peer < ranks; ++peer) {
      if (peer != rank) writer.wait(peer, round);
    }
  }
}

// One that waits for the others, who tell and go on.
template <std::uint8_t kRounds>
void one_waits(Writer& writer, std::size_t rank, std::size_t ranks) {
  for (std::uint8_t round = 1; round <= kRounds; ++round) {
    if (rank != 0) writer.tell(round);
    for (std::size_t peer = 1; rank == 0 && peer < ranks; ++peer) writer.wait(peer, round);
  }
}

// The others wait for one, who tells them both at once and goes on.
template <std::uint8_t kRounds>
void one_tells(Writer& writer, std::size_t rank, std::size_t /*ranks*/) {
  for (std::uint8_t round = 1; round <= kRounds; ++round) {
    if (rank == 0)
      writer.tell(round);
    else
      writer.wait(0, round);
  }
}

Exploration explore_script(Script script, std::size_t ranks, Fault fault) {
  std::vector<ModelProgram> programs, buffers;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    Writer writer(rank, ranks, fault);
    script(writer, rank, ranks);
    if (writer.last() > 0) buffers.push_back(buffer_of(rank, writer.last()));
    programs.push_back(std::move(writer).program());
  }
  programs.insert(programs.end(), buffers.begin(), buffers.end());
  return explore(programs);
}

std::string first_stuck(Fault fault) {
  for (const std::size_t ranks : {std::size_t{2}, std::size_t{3}}) {
    for (const Script script : {in_step<1>, in_step<2>, one_waits<3>, one_tells<3>}) {
      const auto found = explore_script(script, ranks, fault);
      if (!found.stuck.empty()) return found.stuck;
      if (ranks == 3) break;
    }
  }
  return {};
}

}  // namespace

TEST_CASE("native sleep: of two ranks none sleeps for ever, in any interleaving", "[shm]") {
  for (const Script script : {in_step<1>, in_step<3>, one_waits<3>, one_tells<3>}) {
    const auto found = explore_script(script, 2, Fault::none);
    CHECK(found.stuck == "");
    CHECK(found.ends > 0);
    CHECK(found.states > 100);
  }
}

TEST_CASE("native sleep: nor of three", "[shm][rest]") {
  for (const Script script : {in_step<1>, one_waits<2>, one_tells<2>}) {
    const auto found = explore_script(script, 3, Fault::none);
    CHECK(found.stuck == "");
    CHECK(found.ends > 0);
    CHECK(found.states > 1000);
  }
}

TEST_CASE("native sleep: planted bugs let a rank sleep for ever", "[shm]") {
  CHECK(first_stuck(Fault::rings_before_it_stores) != "");
  CHECK(first_stuck(Fault::reads_sleepers_before_it_stores) != "");
  CHECK(first_stuck(Fault::counts_itself_after_the_last_look) != "");
  CHECK(first_stuck(Fault::arms_again_before_it_sleeps) != "");
  CHECK(first_stuck(Fault::wakes_without_clearing_the_word) != "");
  CHECK(first_stuck(Fault::takes_no_nap) != "");
  CHECK(first_stuck(Fault::disarms_after_the_nap) != "");
}
