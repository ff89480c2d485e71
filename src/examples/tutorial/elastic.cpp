// A computation that goes on when a rank dies: colrun -n 4 --keep-going elastic. A process that is started with the
// word join takes the place of a rank that was lost. docs/rank-dies.md explains it.
#include <cstdint>
#include <cstdio>
#include <span>

#include <col/col.hpp>

namespace {

constexpr std::uint64_t kSteps = 200;

// The same on all ranks before each step.
struct State {
  std::uint64_t steps = 0;
  double value = 0;
};

// All ranks take the state of the root, at once or not at all.
void share(col::Group& world, State& state, int root) {
  State theirs = state;
  world.broadcast_object(theirs, {.root = root});
  state = theirs;
}

void train(col::Group& world, State& state) {
  while (state.steps < kSteps) {
    auto gradient = static_cast<double>(state.steps);
    world.allreduce(std::span(&gradient, 1), {.op = col::ReduceOp::avg});
    state = {state.steps + 1, 0.5 * state.value + gradient};
  }
}

}  // namespace

int main(int argc, char** /*argv*/) try {
  const bool joins = argc > 1;
  // It takes `for (;;) try` for two statements.
  // clang-format off
  // [readme]
  col::Group world = joins ? col::join() : col::init();
  State state;
  for (;;) try {
    share(world, state, world.source());  // broadcasts the state of that rank
    train(world, state);
    break;
  } catch (const col::Error& error) {
    if (!error.is_loss()) throw;
    world = world.renew({.progress = state.steps});
  }
  // [/readme]
  // clang-format on
  std::printf("epoch %d, rank %d of %d: %.17g after %d steps\n", static_cast<int>(world.epoch()), world.rank(),
              world.size(), state.value, static_cast<int>(state.steps));
  col::finalize();
} catch (const col::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
