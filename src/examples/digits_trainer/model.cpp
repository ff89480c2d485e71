#include "model.hpp"

#include <algorithm>
#include <cmath>
#include <random>

namespace digits {
namespace {

// Softmax in place; returns -log of the probability of `label`.
double softmax_loss(std::span<float> logits, int label) {
  const float most = *std::max_element(logits.begin(), logits.end());  // subtracted, so that exp cannot overflow
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit - most));
  const double loss = std::log(sum) - static_cast<double>(logits[static_cast<std::size_t>(label)] - most);
  for (float& logit : logits) logit = static_cast<float>(std::exp(static_cast<double>(logit - most)) / sum);
  return loss;
}

}  // namespace

void Model::initialize(std::uint64_t seed) {
  std::mt19937_64 engine(seed);
  // std::uniform_real_distribution may differ between libraries; the top 53 bits do not.
  const auto uniform = [&engine](double limit) {
    const double unit = static_cast<double>(engine() >> 11) * 0x1.0p-53;
    return static_cast<float>((2 * unit - 1) * limit);
  };
  std::fill(parameters_.begin(), parameters_.end(), 0.0f);
  const double hidden_limit = std::sqrt(6.0 / shape_.inputs);
  const double output_limit = std::sqrt(6.0 / shape_.hidden);
  for (std::size_t i = 0; i < hidden_bias(); ++i) parameters_[i] = uniform(hidden_limit);
  for (std::size_t i = output_weight(); i < output_bias(); ++i) parameters_[i] = uniform(output_limit);
}

void Model::hidden_forward(const Image& image, std::span<float> hidden) const {
  const float* weight = parameters_.data();
  for (std::size_t h = 0; h < shape_.hidden; ++h, weight += shape_.inputs) {
    float sum = parameters_[hidden_bias() + h];
    for (std::size_t i = 0; i < shape_.inputs; ++i) sum += weight[i] * image.pixels[i];
    hidden[h] = std::max(sum, 0.0f);
  }
}

std::vector<float> Model::output_forward(std::span<const float> hidden) const {
  std::vector<float> logits(shape_.classes);
  const float* weight = parameters_.data() + output_weight();
  for (std::size_t c = 0; c < shape_.classes; ++c, weight += shape_.hidden) {
    float sum = parameters_[output_bias() + c];
    for (std::size_t h = 0; h < shape_.hidden; ++h) sum += weight[h] * hidden[h];
    logits[c] = sum;
  }
  return logits;
}

double Model::output_step(std::span<const float> hidden, int label, std::span<float> hidden_delta,
                          std::span<double> gradient) const {
  std::vector<float> delta = output_forward(hidden);
  const double loss = softmax_loss(delta, label);  // now probabilities; minus the target: d loss / d logit
  delta[static_cast<std::size_t>(label)] -= 1.0f;

  std::fill(hidden_delta.begin(), hidden_delta.end(), 0.0f);
  for (std::size_t c = 0; c < shape_.classes; ++c) {
    const std::size_t row = output_weight() + c * shape_.hidden;
    for (std::size_t h = 0; h < shape_.hidden; ++h) {
      gradient[row + h] += static_cast<double>(delta[c] * hidden[h]);
      hidden_delta[h] += delta[c] * parameters_[row + h];
    }
    gradient[output_bias() + c] += static_cast<double>(delta[c]);
  }
  return loss;
}

void Model::hidden_backward(const Image& image, std::span<const float> hidden, std::span<const float> hidden_delta,
                            std::span<double> gradient) const {
  for (std::size_t h = 0; h < shape_.hidden; ++h) {
    if (hidden[h] <= 0.0f) continue;  // ReLU: no gradient through a unit that is off
    const std::size_t row = h * shape_.inputs;
    for (std::size_t i = 0; i < shape_.inputs; ++i) {
      gradient[row + i] += static_cast<double>(hidden_delta[h] * image.pixels[i]);
    }
    gradient[hidden_bias() + h] += static_cast<double>(hidden_delta[h]);
  }
}

double Model::add_gradient(std::span<const Image> images, std::span<const std::uint32_t> indices,
                           std::span<double> gradient) const {
  std::vector<float> hidden(shape_.hidden);
  std::vector<float> hidden_delta(shape_.hidden);
  double loss = 0;
  for (const std::uint32_t index : indices) {
    const Image& image = images[index];
    hidden_forward(image, hidden);
    loss += output_step(hidden, image.label, hidden_delta, gradient);
    hidden_backward(image, hidden, hidden_delta, gradient);
  }
  return loss;
}

int Model::predict(const Image& image) const {
  std::vector<float> hidden(shape_.hidden);
  hidden_forward(image, hidden);
  const std::vector<float> logits = output_forward(hidden);
  return static_cast<int>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

}  // namespace digits
