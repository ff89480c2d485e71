// The clock, and everything that is simulated: simulator.cpp explains how.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <col/plan.hpp>

#include "plan/simulation/event_queue.hpp"
#include "plan/simulation/node.hpp"
#include "plan/simulation/pair_table.hpp"
#include "plan/simulation/ports.hpp"
#include "plan/simulation/rank_state.hpp"

namespace col::plan::simulation {

class Simulator {
 public:
  // `nodes`: of all ranks. Of these, the first so many are simulated, for all: simulation/symmetry.hpp. `starts`: when
  // each begins; empty: at 0.
  Simulator(const std::vector<int>& nodes, int simulated, const PlanOfRank& plans, const CostModel& model,
            std::size_t element_size, std::size_t wide_size, std::vector<double> starts = {});
  // Requires: called once.
  Simulation run();
  // A rank that was simulated for several, after run().
  const RankState& state_of(int r) const noexcept { return ranks_[static_cast<std::size_t>(r)]; }

 private:
  // The subject of an event, in its lowest bits. The other bits are the number of a message, rank or node.
  enum Tag : std::uint32_t {
    kMessage,     // a part of a message has ended
    kMessageCpu,  // the processor's part of a message has ended, at one end: number * 2 + side
    kRound,       // a rank's work in a round has ended, and no message is left
    kWork,        // a part of a rank's piece of work has ended
    kMemory,      // the first user of a node's memory may be served
  };
  static constexpr std::uint32_t kTagBits = 3;
  static std::uint32_t tagged(Tag tag, std::uint32_t number) noexcept { return number << kTagBits | tag; }
  static std::uint32_t tagged(Tag tag, int number) noexcept { return tagged(tag, static_cast<std::uint32_t>(number)); }
  static Tag tag_of(std::uint32_t event) noexcept { return static_cast<Tag>(event & ((1U << kTagBits) - 1)); }

  // A message that became ready, and what decides its turn: the order in which the senders, then the receivers, listed.
  struct Ready {
    std::uint64_t slots;  // the sender's, then the receiver's
    std::uint32_t sender, id;
    bool operator<(const Ready& other) const noexcept {
      if (slots != other.slots) return slots < other.slots;
      return sender != other.sender ? sender < other.sender : id < other.id;
    }
  };
  struct Node {
    Cores cores;
    MemoryBus memory;
    double memory_event_at = -1;  // events at another time are out of date
  };
  // The ranks of a message as the queues of unpaired messages know it: as if its sender were one of those simulated.
  struct Ends {
    std::uint32_t from, to;
  };
  Ends ends_of(Side side, int me, int peer) const noexcept;
  RankState& rank(int r) noexcept { return ranks_[static_cast<std::size_t>(r)]; }
  Node& node(int n) noexcept { return nodes_[static_cast<std::size_t>(n)]; }
  Node& node_of(int r) noexcept { return node(rank(r).node); }

  void expect_event(std::uint32_t event, int stage);
  void happen(std::uint32_t event);
  void speak_for_all();

  void begin_rounds(int r);
  void expect(int r, const Step& step, int stage);
  void post(int r, std::uint32_t slot, const Step& step);
  void is_ready(std::uint32_t id);
  bool is_inter(int r, int peer) const noexcept {
    return nodes_of_ranks_[static_cast<std::size_t>(r)] != nodes_of_ranks_[static_cast<std::size_t>(peer)];
  }
  bool advance(int r);
  void proceed(int r);

  void serve_ports();
  void start(std::uint32_t id);
  void travel(std::uint32_t id);
  void arrive(std::uint32_t id);
  void arrived_at(int r, std::uint32_t slot);

  // Shared resources: shared.cpp.
  bool shares() const noexcept { return model_.cores > 0 || model_.memory_bandwidth > 0; }
  void spend_cpu(std::uint32_t id);
  void cpu_spent(std::uint32_t id, Side side);
  void start_work(int r);
  void begin_work(int r);
  void part_done(std::uint32_t who);
  void got_core(std::uint32_t who);
  void give_back_core(int r);
  void use_memory(int n, std::uint32_t who, double bytes);
  void watch_memory(int n);
  void serve_memory(int n);

  [[noreturn]] void refuse(const std::string& what) const;
  [[noreturn]] void refuse_stuck();

  const CostModel& model_;
  std::size_t element_size_, wide_size_;
  RoundReader reader_;
  const std::vector<int>& nodes_of_ranks_;  // of all
  int size_, simulated_;                    // all ranks, and how many are simulated for them
  std::vector<double> starts_;
  MessagePool messages_;
  PairTable unpaired_;  // messages with only one end posted, by their ranks
  EventQueue events_;
  std::vector<RankState> ranks_;
  std::vector<Node> nodes_;
  Ports ports_;
  std::vector<std::uint32_t> freed_[2];  // ports, in this instant
  std::vector<Ports::Taken> taken_;      // in this instant
  std::vector<Ready> ready_;             // in this instant
  Simulation result_;
  double now_ = 0;
};

}  // namespace col::plan::simulation
