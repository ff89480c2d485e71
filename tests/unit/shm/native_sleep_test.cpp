// No wake-up is lost between ranks that sleep in a collective and those that tell them: waiter.cpp and doorbell.hpp as
// small programs, in all interleavings. The kernel's sleep has no bound here, so that it hides nothing.
#include <cstdint>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/protocol/state_space.hpp"

using namespace col::test;

namespace {

enum class Fault {
  none,
  looks_before_it_arms,
  rings_before_it_stores,
  counts_itself_after_the_last_look,
  reads_sleepers_before_it_stores,
  arms_again_before_it_sleeps,
  wakes_without_clearing_the_word,
  says_for_whom_after_it_counts,
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

// One rank's program, instruction by instruction.
class Writer {
 public:
  Writer(std::size_t rank, std::size_t ranks, Fault fault) : rank_(rank), ranks_(ranks), fault_(fault) {}

  // Waiter::wake_others() after its store.
  void tell(std::uint8_t value) {
    const bool late = fault_ == Fault::rings_before_it_stores || fault_ == Fault::reads_sleepers_before_it_stores;
    if (!late) set("tell", told(rank_), value);
    const std::size_t look = add("look whether somebody sleeps");
    if (fault_ == Fault::reads_sleepers_before_it_stores) set("tell", told(rank_), value);
    for (std::size_t other = 0; other < ranks_; ++other) {
      if (other != rank_) ring(other);
    }
    const std::size_t end = here();
    act(look, [=](ModelState& s) { return s.words[kSleepers] != 0 ? next(look) : static_cast<int>(end); });
    if (late) set("tell", told(rank_), value);
  }

  // Waiter::wait_on(), without the looks that come before it sleeps: they only make sleep rarer.
  void wait(std::size_t peer, std::uint8_t value) {
    const std::size_t again = here();
    const bool late = fault_ == Fault::says_for_whom_after_it_counts;
    if (!late) set("say for whom", awaited(rank_), static_cast<std::uint8_t>(peer + 1));
    if (fault_ != Fault::counts_itself_after_the_last_look) count(+1);
    std::size_t last_look = 0;
    const auto say_late = [&] {
      if (late) set("say for whom", awaited(rank_), static_cast<std::uint8_t>(peer + 1));
    };
    if (fault_ == Fault::looks_before_it_arms) {
      last_look = add("look a last time");
      set("arm", bell(rank_), kAsleep);
    } else {
      set("arm", bell(rank_), kAsleep);
      last_look = add("look a last time");
    }
    say_late();
    if (fault_ == Fault::counts_itself_after_the_last_look) count(+1);
    if (fault_ == Fault::arms_again_before_it_sleeps) set("arm again", bell(rank_), kAsleep);
    const std::size_t enter = add("ask the kernel for sleep");
    const std::size_t asleep = add("sleep");
    set("disarm", bell(rank_), kAwake);
    count(-1);
    const std::size_t look = add("look");
    const std::size_t found = here();
    set("disarm", bell(rank_), kAwake);
    if (fault_ != Fault::counts_itself_after_the_last_look) count(-1);
    const std::size_t end = here();
    const std::size_t rank = rank_;
    const auto is_there = [peer, value](const ModelState& s) { return s.words[told(peer)] >= value; };
    act(last_look, [=](ModelState& s) { return is_there(s) ? static_cast<int>(found) : next(last_look); });
    // One step, as the kernel looks at the word and enqueues the sleeper under one lock.
    act(enter, [=](ModelState& s) {
      if (s.words[bell(rank)] != kAsleep) return next(asleep);
      s.words[in_kernel(rank)] = 1;
      return next(enter);
    });
    act(asleep, [=](ModelState& s) { return s.words[in_kernel(rank)] != 0 ? Instruction::kBlocked : next(asleep); });
    act(look, [=](ModelState& s) { return static_cast<int>(is_there(s) ? end : again); });
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
  void count(int change) {
    const std::size_t index = add(change > 0 ? "count itself among the sleepers" : "count itself no more");
    act(index, [=](ModelState& s) {
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
void one_waits(Writer& writer, std::size_t rank, std::size_t ranks) {
  for (std::uint8_t round = 1; round <= 3; ++round) {
    if (rank != 0) writer.tell(round);
    for (std::size_t peer = 1; rank == 0 && peer < ranks; ++peer) writer.wait(peer, round);
  }
}

// The others wait for one, who tells them both at once and goes on.
void one_tells(Writer& writer, std::size_t rank, std::size_t /*ranks*/) {
  for (std::uint8_t round = 1; round <= 3; ++round) {
    if (rank == 0)
      writer.tell(round);
    else
      writer.wait(0, round);
  }
}

Exploration explore_script(Script script, std::size_t ranks, Fault fault) {
  std::vector<ModelProgram> programs;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    Writer writer(rank, ranks, fault);
    script(writer, rank, ranks);
    programs.push_back(std::move(writer).program());
  }
  return explore(programs);
}

std::string first_stuck(Fault fault) {
  for (const std::size_t ranks : {std::size_t{2}, std::size_t{3}}) {
    for (const Script script : {in_step<1>, in_step<2>, one_waits, one_tells}) {
      const auto found = explore_script(script, ranks, fault);
      if (!found.stuck.empty()) return found.stuck;
      if (ranks == 3) break;
    }
  }
  return {};
}

}  // namespace

TEST_CASE("native sleep: of two ranks none sleeps for ever, in any interleaving", "[shm]") {
  for (const Script script : {in_step<1>, in_step<3>, one_waits, one_tells}) {
    const auto found = explore_script(script, 2, Fault::none);
    CHECK(found.stuck == "");
    CHECK(found.ends > 0);
    CHECK(found.states > 100);
  }
}

TEST_CASE("native sleep: nor of three", "[shm]") {
  for (const Script script : {in_step<2>, one_waits, one_tells}) {
    const auto found = explore_script(script, 3, Fault::none);
    CHECK(found.stuck == "");
    CHECK(found.ends > 0);
    CHECK(found.states > 1000);
  }
}

TEST_CASE("native sleep: planted bugs let a rank sleep for ever", "[shm]") {
  CHECK(first_stuck(Fault::looks_before_it_arms) != "");
  CHECK(first_stuck(Fault::rings_before_it_stores) != "");
  CHECK(first_stuck(Fault::reads_sleepers_before_it_stores) != "");
  CHECK(first_stuck(Fault::counts_itself_after_the_last_look) != "");
  CHECK(first_stuck(Fault::arms_again_before_it_sleeps) != "");
  CHECK(first_stuck(Fault::wakes_without_clearing_the_word) != "");
  CHECK(first_stuck(Fault::says_for_whom_after_it_counts) != "");
}
