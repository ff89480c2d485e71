// The program of the ranks of a simulated job: calls of many kinds in several groups, which the seed chooses, and the
// right data of each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <col/group.hpp>

#include "simulation/random.hpp"

namespace col::test {

struct Step {
  enum class Kind {
    collective,  // of the table
    ring,        // every rank sends to the next one
    message,     // from the root to another rank
    split,       // makes the next group of the program, of ranks of equal color
    dup,         // makes the next group, of all ranks
    await,       // of what has been started, all
    // Since the draws of version 2 (plan.hpp):
    subgroup,  // makes the next group, of ranks in an order of its own
    any,       // all send to the root, which takes what comes first
    own,       // messages to oneself
    batch,     // each rank to each other one, at once
    object,    // of another size on each rank
    scope,     // collectives that are started together
    again,     // a collective with the same buffers, several times
    beside     // a second thread of each rank sends messages meanwhile
  };
  Kind kind = Kind::collective;
  int group = 0;  // 0: the world
  Collective collective = Collective::barrier;
  std::size_t count = 0;
  int root = 0;             // of the group; taken modulo its size
  bool is_started = false;  // an i-form
  bool is_tested = false;   // by test(), again and again, before it is waited for
  bool continues = false;   // a function is given to then()
  ReduceOp op = ReduceOp::sum;
  std::vector<int> colors = {};  // split: by rank of the world
  int pause_us = 0;              // the most that a rank computes before
  std::vector<int> keys = {};    // split: by rank of the world; subgroup: its ranks, in their order
  bool is_dropped = false;       // nobody waits for what is started
  bool is_native = false;        // by the backend's own algorithm, where it has one
};

struct Program {
  std::vector<Step> steps;
  int groups = 1;
  int world_only = 0;  // from this step on, the world alone is used
};

// `more`: for what programs have got later, so that a seed's other choices stay.
Program choose_program(Random& random, Random& more, int ranks);
// Adds steps of more kinds. `has_turns`: threads may use one group at once.
void widen(Program& program, Random& random, int ranks, bool has_turns);
std::string describe(const Step& step);

// The buffers of one call of one rank, and what they have to hold in the end.
class CallData {
 public:
  // `number`: of the step. `group`: where it runs.
  CallData(const Step& step, int number, const Group& group);

  // Makes the call.
  void run(Group& group);
  Work start(Group& group);
  // Empty if the data is right.
  std::string problem() const;

 private:
  Call call();
  Options options() const;
  std::int64_t value(int rank, std::size_t i) const;
  void expect_collective();
  std::size_t count_of(int from, int to) const;

  const Step& step_;
  const int number_, rank_, size_, root_;
  std::vector<std::int64_t> in_, out_, expected_;
  std::vector<std::size_t> in_counts_, out_counts_;  // of blocks of different sizes
  bool checks_ = true;
};

}  // namespace col::test
