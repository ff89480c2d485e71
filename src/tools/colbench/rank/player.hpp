// The work of one rank: carries out rank 0's commands for all ranks, and reports the results.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include <col/group.hpp>

#include "colbench/rank/orders.hpp"
#include "colbench/rank/start_line.hpp"
#include "common/coordinator.hpp"

namespace col::colbench {

class Player {
 public:
  // Collective over the ranks of `context`. Throws col::Error.
  Player(Context& context, Duration timeout);

  // On rank 0: all ranks take the order. Throws col::Error.
  void give(const Order& order);
  // On rank 0: all ranks do it. Returns the answers of all ranks. Errors of an operation are in the answers.
  std::vector<Answer> command(const Command& command, Duration limit) { return give(command, {}, limit); }
  // On the other ranks: carries out rank 0's commands until the run is over. Waits `patience` at most for the next
  // one, and then throws col::Error.
  void follow(Duration patience);

  tools::Coordinator& ranks() { return *ranks_; }
  StartLine& start_line() { return *start_line_; }
  const std::vector<Whereabouts>& whereabouts() const { return whereabouts_; }  // by rank
  // The group of a cell, or of all ranks over `backend`. Collective if it does not exist yet.
  Group group_of(const CellSpec& spec);

 private:
  std::vector<Answer> give(const Command& command, const std::string& order, Duration limit);
  // What a rank gets as text: the bytes of a Command, and the text of an Order behind one of that kind.
  std::string obey(const std::string& text);
  void take_order(const Order& order);
  Answer carry_out(const Command& command);
  void set_up(const CellSpec& spec);
  void take(const Command& command, Answer& answer);
  double skew_of(std::uint64_t iteration) const;

  Context& context_;
  Duration timeout_;
  Group control_;
  std::unique_ptr<tools::Coordinator> ranks_;
  std::unique_ptr<StartLine> start_line_;
  Order order_;
  std::vector<Whereabouts> whereabouts_;
  std::map<std::string, Group> groups_;  // by backend and way of grouping
  std::shared_ptr<void> gpu_;            // current as long as it exists; made when a cell needs it
  std::unique_ptr<Workload> workload_;   // null: this rank only comes to the start
};

}  // namespace col::colbench
