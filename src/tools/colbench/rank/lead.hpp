// The control of a run on rank 0: which cell is sampled when, and when there are enough samples.
#pragma once

#include <functional>
#include <random>
#include <string>
#include <vector>

#include <col/group.hpp>

#include "colbench/cell/results.hpp"
#include "colbench/rank/player.hpp"

namespace col::colbench {

struct LeadListener {
  // Called before each command to the ranks, none of which takes long.
  std::function<void()> on_command = [] {};
  std::function<void(std::size_t done, std::size_t total, const CellSpec& spec)> on_cell;
  // Called from time to time with the results so far, so that they are not lost if this rank is.
  std::function<void(const Results& results)> on_checkpoint;
};

// Carries out an Order. All ranks except rank 0 are in Player::follow() meanwhile.
class Lead {
 public:
  Lead(Player& player, const ContextSpec& context, LeadListener listener);

  // The results say what went wrong: ended_early and exit_code.
  Results run(const Order& order);

 private:
  struct State;

  void expand(const Order& order);
  void note_gpus();
  void calibrate();
  double hand_over();
  void calibrate_level(std::size_t bytes, int times);
  void fit(const std::string& backend);
  std::vector<double> measure_messages(Machine::Fit& fit, std::size_t index, int samples);
  bool is_one_node() const { return results_.machine.node_of_rank.empty(); }
  void sample_all();
  void sample(State& state, double budget_seconds);
  void record(State& state, const std::vector<Answer>& answers);
  int in_this_launch(int iterations) const;
  bool is_done(const State& state) const;
  bool is_late(const State& state, double skew) const;
  void name_what_ran(Cell& cell);
  void checkpoint();

  // All ranks do it. Throws RunEnded if one has failed permanently.
  std::vector<Answer> command(const Command& command);
  // Times the operation that is set up.
  std::vector<Answer> take(int samples, bool checked);
  // The same: the longest time of all ranks, per operation.
  std::vector<double> timed(int samples, bool checked);

  Player& player_;
  const ContextSpec& context_;
  LeadListener listener_;
  Order order_;
  std::size_t wanted_ = 0;  // cells of the order that are results; later ones are for fitting
  Results results_;
  std::mt19937_64 random_;
  std::uint64_t iteration_ = 1;
  std::int64_t checkpoint_ns_ = 0;
};

}  // namespace col::colbench
