#include "trainer.hpp"

#include <col/col.hpp>

#include "agreement.hpp"
#include "support/catch.hpp"

namespace {

// A world of one, which needs neither launcher nor backend.
struct Alone {
  col::Context context{col::ContextSpec{}};
  col::Group world = context.init_group({});
};

digits::Dataset small_dataset() {
  auto images = digits::load_images(DIGITS_SOURCE_DATA);
  images.resize(200);
  return digits::split(images);
}

digits::TrainingState small_state() {
  return digits::fresh_state({.hidden = 16}, 1, 32, 0.1);
}

}  // namespace

TEST_CASE("trainer: the loss falls and the accuracy rises", "[examples]") {
  Alone alone;
  const auto dataset = small_dataset();
  digits::Trainer trainer(alone.world, dataset, small_state());
  const double accuracy_before = trainer.test_accuracy();
  const auto first = trainer.run_epoch();
  auto last = first;
  for (int i = 0; i < 14; ++i) last = trainer.run_epoch();
  CHECK(last.loss < first.loss / 4);
  CHECK(last.test_accuracy > 0.7);
  CHECK(last.test_accuracy > accuracy_before);
  CHECK(last.communication_seconds >= 0);
  CHECK(last.communication_seconds <= last.seconds);
  CHECK(trainer.state().epochs == 15);
}

TEST_CASE("trainer: two epochs and one more equal three, bit for bit", "[examples]") {
  Alone alone;
  const auto dataset = small_dataset();
  digits::Trainer through(alone.world, dataset, small_state());
  for (int i = 0; i < 3; ++i) through.run_epoch();

  digits::Trainer before(alone.world, dataset, small_state());
  for (int i = 0; i < 2; ++i) before.run_epoch();
  digits::Trainer after(alone.world, dataset, before.state());
  after.run_epoch();

  CHECK(after.state().parameters == through.state().parameters);
  CHECK(after.state().velocity == through.state().velocity);
  CHECK(after.state().epochs == 3);
}

TEST_CASE("trainer: a batch larger than the training set is one step an epoch", "[examples]") {
  Alone alone;
  const auto dataset = small_dataset();
  auto state = small_state();
  state.batch = 1'000'000;
  digits::Trainer trainer(alone.world, dataset, state);
  const auto first = trainer.run_epoch();
  const auto second = trainer.run_epoch();
  CHECK(second.loss < first.loss);
}

TEST_CASE("agreement: nobody's problem is no exit code, somebody's is theirs", "[examples]") {
  Alone alone;
  CHECK(digits::agree(alone.world, {}) == 0);
  CHECK(digits::agree(alone.world, {2, "as it should be: this line is part of a test"}) == 2);
}
