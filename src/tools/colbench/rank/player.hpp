// The work of one rank: carries out rank 0's commands for all ranks, and reports the results.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <col/group.hpp>

#include "colbench/machine/kernels.hpp"
#include "colbench/rank/order.hpp"
#include "colbench/rank/start_line.hpp"
#include "colbench/rank/whereabouts.hpp"
#include "colbench/rank/workload.hpp"
#include "common/coordinator.hpp"

namespace col::colbench {

// Trivially copyable, so it is sent as it is.
struct Command {
  enum class Kind : std::uint8_t {
    order,     // take the Order whose text follows
    group,     // make the group of cell `cell`
    set_up,    // the same, and make its workload
    kernel,    // make the workload of a kernel on `bytes`; `alone`: only on rank 0
    take,      // time it `samples` times
    hand_over  // StartLine::hand_over()
  };
  Kind kind = Kind::order;
  Kernel calibration = Kernel::copy;
  bool alone = false;
  bool whole_check = false;  // of the first sample
  bool checked = true;
  int cell = 0;
  int samples = 0;
  std::uint64_t iteration = 0;  // of the first sample
  std::size_t bytes = 0;
  double delay_seconds = 0;
};

// The results of one rank for one command. Times are in seconds after the common start, or after the rank's own start
// if there is no common one.
struct Answer {
  std::string trouble = {};  // empty: all went well
  ErrorCode code = ErrorCode::internal;
  bool harmless = false;  // the group can be used again, because the call was refused before anything moved
  bool takes_part = true;
  double operations = 1;
  std::vector<double> began = {}, ended = {};
  std::vector<double> on_device = {};  // for each sample; empty if the GPU's time is not known
  Check check = {};
};

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
  const Order& order() const { return order_; }
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

// Which group a rank is in, and its place there: "mod:2" rank % 2, "div:4" rank / 4, "pairs", "bisect" halves.
struct Placement {
  int group = 0, rank = 0, size = 1;
};
Placement placement_of(const std::string& groups, int rank, int size);

std::string encode(const Answer& answer);
Answer decode_answer(const std::string& bytes);

}  // namespace col::colbench
