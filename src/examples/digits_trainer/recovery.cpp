#include "recovery.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>

namespace digits {
void Recovery::keep(StepState state) {
  if (last_.size() == 2) last_.pop_front();
  last_.push_back(std::move(state));
}

const StepState& Recovery::recover(col::Group& world, const col::Error& error) {
  std::optional<col::Error> failed = error;
  std::array<std::uint64_t, 2> place{};  // epoch and step
  while (failed) {
    // Others break off by `aborted`, as this rank goes on without the lost one.
    if (!failed->is_loss()) throw col::Error(*failed);
    world = world.renew();
    failed.reset();
    try {
      place = {last_.back().epoch, 0};
      world.allreduce(std::span(place).first(1), {.op = col::ReduceOp::min});
      // Who has done more than that epoch has its test behind it, which counts as any step.
      const auto most = std::max_element(last_.begin(), last_.end(), [&](const StepState& a, const StepState& b) {
        return std::pair(a.epoch == place[0], a.step) < std::pair(b.epoch == place[0], b.step);
      });
      place[1] = most->step;
      world.allreduce(std::span(place).last(1), {.op = col::ReduceOp::min});
    } catch (const col::Error& again) {
      failed = again;
    }
  }
  const auto found = std::find_if(last_.begin(), last_.end(), [&](const StepState& state) {
    return state.epoch == place[0] && state.step == place[1];
  });
  if (found == last_.end()) throw std::logic_error("no rank can be two steps ahead of another");
  // What is behind it has not happened.
  last_.erase(found + 1, last_.end());
  return last_.back();
}

}  // namespace digits
