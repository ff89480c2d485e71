// Training that goes on when a rank is lost. Every rank holds the whole state, so what the others hold is enough: they
// renew their group, agree on the last step that all of them have done, and go on from there. Those that take the
// places of lost ranks get the state from one of them.
//
// An allreduce ends on no rank before all have begun it. So when one fails, no rank is more than one step ahead of
// another, and two states are enough to go back to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include <col/col.hpp>

namespace digits {

// Before a step: of an epoch, the one after its last batch is the test.
struct StepState {
  std::uint64_t epoch = 0;
  std::uint64_t step = 0;
  double loss = 0;       // of the epoch, until now
  double accuracy = -1;  // of the test before it; negative: there was none
  std::vector<float> parameters = {};
  std::vector<float> velocity = {};
};

// The same for the whole training.
struct RunSettings {
  std::uint64_t seed = 0;
  std::uint64_t batch = 0;
  std::uint64_t first_epoch = 0;
  double learning_rate = 0;
};

class Recovery {
 public:
  // One that is to join brings no settings.
  explicit Recovery(std::size_t parameters) : parameters_(parameters) {}

  RunSettings settings = {};
  // Before each step.
  void keep(StepState state);

  // Collective over the ranks that are left and those that join. Puts the next epoch of `world` in its place, and
  // returns the last state that all have. Throws `error` if it is not about a lost rank, and what is thrown meanwhile.
  // Without an error: for one that has joined `world`.
  const StepState& recover(col::Group& world, std::optional<col::Error> error = {});

 private:
  void go_back(col::Group& world);
  void share(col::Group& world);

  std::size_t parameters_;
  std::deque<StepState> last_;  // the two last, the older one first
};

}  // namespace digits
