// Training that goes on when a rank is lost. Every rank holds the whole state, so what the others hold is enough: they
// renew their group, agree on the last step that all of them have done, and go on from there.
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
  double loss = 0;  // of the epoch, until now
  std::vector<float> parameters = {};
  std::vector<float> velocity = {};
};

class Recovery {
 public:
  // Before each step.
  void keep(StepState state);

  // Collective over the ranks that are left. Puts the next epoch of `world` in its place, and returns the last state
  // that all have. Throws `error` if it is not about a lost rank, and what is thrown meanwhile.
  const StepState& recover(col::Group& world, const col::Error& error);

 private:
  std::deque<StepState> last_;  // the two last, the older one first
};

}  // namespace digits
