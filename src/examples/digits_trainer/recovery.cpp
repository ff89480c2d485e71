#include "recovery.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <span>
#include <stdexcept>
#include <tuple>
#include <utility>

namespace digits {
void Recovery::keep(StepState state) {
  if (last_.size() == 2) last_.pop_front();
  last_.push_back(std::move(state));
}

const StepState& Recovery::recover(col::Group& world, std::optional<col::Error> error) {
  for (bool has_recovered = false; !has_recovered;) {
    if (error) {
      // Others break off by `aborted`, as this rank goes on without the lost one.
      if (!error->is_loss()) throw col::Error(*error);
      // A rank that has a state can give it to those that have none.
      world = world.renew({.progress = last_.empty() ? 0U : 1U});
    }
    try {
      go_back(world);
      share(world);
      has_recovered = true;
    } catch (const col::Error& again) {
      error = again;
    }
  }
  return last_.back();
}

// To the last step that all have done. One that has joined has done any.
void Recovery::go_back(col::Group& world) {
  constexpr std::uint64_t kAny = std::numeric_limits<std::uint64_t>::max();
  std::array<std::uint64_t, 2> place{kAny, kAny};  // epoch and step
  if (!last_.empty()) place[0] = last_.back().epoch;
  world.allreduce(std::span(place).first(1), {.op = col::ReduceOp::min});
  if (!last_.empty()) {
    // A rank that has done more than that epoch has its test behind it, which counts as any step.
    const auto most = std::max_element(last_.begin(), last_.end(), [&](const StepState& a, const StepState& b) {
      return std::pair(a.epoch == place[0], a.step) < std::pair(b.epoch == place[0], b.step);
    });
    place[1] = most->step;
  }
  world.allreduce(std::span(place).last(1), {.op = col::ReduceOp::min});
  if (place[0] == kAny) throw std::runtime_error("no rank is left that has the state; start from a checkpoint");
  if (last_.empty()) return;
  const auto found = std::find_if(last_.begin(), last_.end(), [&](const StepState& state) {
    return state.epoch == place[0] && state.step == place[1];
  });
  if (found == last_.end()) throw std::logic_error("no rank can be two steps ahead of another");
  // What is behind it has not happened.
  last_.erase(found + 1, last_.end());
}

void Recovery::share(col::Group& world) {
  bool has_each = true;
  for (int rank = 0; rank < world.size(); ++rank) has_each = has_each && world.progress(rank) > 0;
  if (has_each) return;
  const int root = world.source();
  StepState state;
  state.parameters.resize(parameters_);
  state.velocity.resize(parameters_);
  if (!last_.empty()) state = last_.back();
  std::array<std::uint64_t, 5> counters{state.epoch, state.step, settings.seed, settings.batch, settings.first_epoch};
  std::array<double, 3> reals{state.loss, state.accuracy, settings.learning_rate};
  world.broadcast(counters, {.root = root});
  world.broadcast(reals, {.root = root});
  world.broadcast(state.parameters, {.root = root});
  world.broadcast(state.velocity, {.root = root});
  if (!last_.empty()) return;
  std::tie(state.epoch, state.step, settings.seed, settings.batch, settings.first_epoch) = std::tuple_cat(counters);
  std::tie(state.loss, state.accuracy, settings.learning_rate) = std::tuple_cat(reals);
  keep(std::move(state));
}

}  // namespace digits
