#include "model.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <vector>

#include "dataset.hpp"
#include "support/catch.hpp"

namespace {

digits::Shape small_shape() {
  return {.hidden = 7};
}

std::vector<digits::Image> some_images() {
  auto images = digits::load_images(DIGITS_SOURCE_DATA);
  images.resize(12);
  return images;
}

std::vector<std::uint32_t> all_of(const std::vector<digits::Image>& images) {
  std::vector<std::uint32_t> indices(images.size());
  std::iota(indices.begin(), indices.end(), 0u);
  return indices;
}

}  // namespace

TEST_CASE("model: the gradient agrees with finite differences", "[examples]") {
  const auto images = some_images();
  const auto indices = all_of(images);
  digits::Model model(small_shape());
  model.initialize(3);
  std::vector<double> gradient(small_shape().parameters());
  model.add_gradient(images, indices, gradient);

  std::vector<double> ignored(gradient.size());
  const float step = 1e-2f;
  std::size_t compared = 0;
  for (std::size_t i = 0; i < gradient.size(); i += 3) {
    float& parameter = model.parameters()[i];
    const float before = parameter;
    parameter = before + step;
    const double above = model.add_gradient(images, indices, ignored);
    parameter = before - step;
    const double below = model.add_gradient(images, indices, ignored);
    parameter = before;
    const double estimate = (above - below) / (2.0 * static_cast<double>(step));
    INFO("parameter " << i);
    // The step's own error is of order 1e-4 here; float rounding in the forward pass adds 1e-6 / step.
    CHECK(gradient[i] == Catch::Approx(estimate).epsilon(0.02).margin(5e-3));
    ++compared;
  }
  CHECK(compared > 150);
}

TEST_CASE("model: the gradients of the shards add up to the gradient of the batch", "[examples]") {
  const auto images = some_images();
  const auto indices = all_of(images);
  digits::Model model(small_shape());
  model.initialize(3);
  std::vector<double> whole(small_shape().parameters());
  const double loss = model.add_gradient(images, indices, whole);
  for (const int size : {2, 5, 17}) {
    std::vector<double> sum(whole.size());
    double sum_of_losses = 0;
    for (int rank = 0; rank < size; ++rank) {
      const auto range = digits::shard(indices.size(), rank, size);
      sum_of_losses +=
          model.add_gradient(images, std::span(indices).subspan(range.begin, range.end - range.begin), sum);
    }
    CHECK(sum_of_losses == Catch::Approx(loss).epsilon(1e-12));
    for (std::size_t i = 0; i < sum.size(); ++i) REQUIRE(sum[i] == Catch::Approx(whole[i]).epsilon(1e-9).margin(1e-9));
  }
}

TEST_CASE("model: an empty shard has no loss and no gradient", "[examples]") {
  const auto images = some_images();
  digits::Model model(small_shape());
  model.initialize(1);
  std::vector<double> gradient(small_shape().parameters());
  CHECK(model.add_gradient(images, {}, gradient) == 0.0);
  CHECK(std::all_of(gradient.begin(), gradient.end(), [](double value) { return value == 0.0; }));
}

TEST_CASE("model: huge logits give a finite loss", "[examples]") {
  const auto images = some_images();
  digits::Model model(small_shape());
  model.initialize(1);
  for (float& parameter : model.parameters()) parameter *= 1000.0f;
  std::vector<double> gradient(small_shape().parameters());
  CHECK(std::isfinite(model.add_gradient(images, all_of(images), gradient)));
}

TEST_CASE("model: the first weights depend on the seed alone", "[examples]") {
  digits::Model a(small_shape());
  digits::Model b(small_shape());
  a.initialize(5);
  b.initialize(5);
  CHECK(std::equal(a.parameters().begin(), a.parameters().end(), b.parameters().begin()));
  b.initialize(6);
  CHECK_FALSE(std::equal(a.parameters().begin(), a.parameters().end(), b.parameters().begin()));
}
