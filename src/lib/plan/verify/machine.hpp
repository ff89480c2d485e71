// Executes the plans of all ranks together, on symbolic values. It reads the rules of Round in the strictest way: every
// message is a rendezvous.
//
// A rank posts all messages of its round together. A message moves when both ends have posted it. When all messages of
// a round have moved, its local steps run, and the next round begins. The content of a message does not depend on when
// it moves, because no receive may overlap a slice that is received or sent in the same round, and local steps wait. So
// one order of execution stands for all of them, and a plan that gets stuck here can get stuck in every order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <col/plan.hpp>

#include "plan/verify/memory.hpp"
#include "plan/verify/symbols.hpp"

namespace col::plan::symbolic {

// Why plans are not good. It never leaves verify().
struct Fault {
  int rank = -1;
  std::size_t round = 0;
  std::string sentence;
};

// A set of ranks: the ranks that are known to have entered a barrier.
class RankSet {
 public:
  explicit RankSet(int ranks = 0) : words_((static_cast<std::size_t>(ranks) + 63) / 64, 0) {}
  void insert(int rank) noexcept { word(rank) |= bit(rank); }
  void insert(const RankSet& other) noexcept {
    for (std::size_t i = 0; i < words_.size(); ++i) words_[i] |= other.words_[i];
  }
  bool contains(int rank) const noexcept { return (words_[static_cast<std::size_t>(rank) / 64] & bit(rank)) != 0; }

 private:
  std::uint64_t& word(int rank) noexcept { return words_[static_cast<std::size_t>(rank) / 64]; }
  static std::uint64_t bit(int rank) noexcept { return std::uint64_t{1} << (rank % 64); }
  std::vector<std::uint64_t> words_;
};

class Machine {
 public:
  Machine(const PlanProblem& problem, const PlanOfRank& plans, Symbols& symbols, Verdict& statistics);
  // Runs to the end of all plans. Throws Fault.
  void run();

  const RankMemory& memory(int rank) const { return at(rank).memory; }
  std::size_t rounds(int rank) const { return at(rank).plan.rounds; }
  // For a barrier: the ranks that this rank knows to have entered.
  const RankSet& entered(int rank) const { return at(rank).known; }

 private:
  // The messages of a round to or from one peer, in the order of the list.
  struct Lane {
    int peer;
    bool receives;
    std::size_t first, count;  // in `messages`
    std::size_t moved = 0;
    bool operator<(const Lane& other) const noexcept {
      return peer != other.peer ? peer < other.peer : receives < other.receives;
    }
  };
  struct Rank {
    Plan plan;
    RankMemory memory;
    Round round = {};
    std::size_t index = 0;                     // of the round it is in
    std::vector<std::uint32_t> messages = {};  // the steps of the round that are messages, by lane
    std::vector<Lane> lanes = {};              // sorted
    std::size_t waiting = 0;                   // messages that have not moved
    std::size_t elements_sent = 0;             // in all rounds
    RankSet known = RankSet{};  // the ranks that had entered, as far as it knew at the start of the round
    RankSet news = RankSet{};   // the same with what messages of the round have brought
    bool has_ended() const noexcept { return index >= plan.rounds; }
    // The next message of a lane that moves.
    const Step& next(const Lane& lane) const noexcept { return round.steps()[messages[lane.first + lane.moved]]; }
  };

  const Rank& at(int rank) const { return ranks_[static_cast<std::size_t>(rank)]; }
  Rank& at(int rank) { return ranks_[static_cast<std::size_t>(rank)]; }

  void begin_round(int rank);
  void check_messages(int rank) const;
  void check_overlap(int rank) const;
  void post(int rank);
  void match(int rank, Lane& lane);
  void move(int sender, const Step& send, int receiver, const Step& recv);
  void end_round(int rank);

  void run_step(int rank, const Step& step);
  void check_local(int rank, const Step& step) const;
  void reduce(int rank, const Step& step);
  void convert(int rank, const Step& step);

  void check_slice(int rank, const Step& step, const Slice& slice) const;
  void check_target(int rank, const Step& step) const;
  // The values of a slice. Throws if some are unset.
  void read(int rank, const Step& step, const Slice& slice, std::vector<Piece>& pieces) const;
  [[noreturn]] void report_deadlock() const;
  std::string wait_of(int rank, const Lane& lane) const;
  // The first lane with a message that has not moved; null if there is none.
  const Lane* open_lane(int rank) const;
  [[noreturn]] void fail(int rank, std::string what) const;

  const PlanProblem& problem_;
  Symbols& symbols_;
  Verdict& statistics_;
  std::vector<Rank> ranks_;
  std::vector<int> ready_;                           // ranks that are between two rounds
  std::vector<Piece> pieces_, right_pieces_, made_;  // kept to reuse their memory
};

}  // namespace col::plan::symbolic
