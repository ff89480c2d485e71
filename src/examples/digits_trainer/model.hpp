// A multi-layer perceptron with one hidden layer: 64 pixels, `hidden` ReLU units, softmax over 10 classes.
//
// All parameters are one array, so that all gradients are one array, and one allreduce a step is enough.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "dataset.hpp"

namespace digits {

struct Shape {
  std::uint32_t inputs = kPixels;
  std::uint32_t hidden = 128;
  std::uint32_t classes = kClasses;

  std::size_t parameters() const noexcept {
    return std::size_t{inputs} * hidden + hidden + std::size_t{hidden} * classes + classes;
  }
  // Of the hidden layer: they come first. The rest are the output layer's.
  std::size_t hidden_parameters() const noexcept { return std::size_t{inputs} * hidden + hidden; }
  bool operator==(const Shape&) const = default;
};

class Model {
 public:
  explicit Model(const Shape& shape) : shape_(shape), parameters_(shape.parameters()) {}

  // Uniform weights scaled to the layer's width (He), zero biases; the same on every machine.
  void initialize(std::uint64_t seed);

  // Adds the gradient of the cross-entropy, summed over images[indices...], to `gradient`; returns the summed loss.
  // Sums in double, so that cutting a batch differently over ranks changes only the last bits of the float sums.
  // Requires: gradient.size() == parameters().size(); every index < images.size().
  double add_gradient(std::span<const Image> images, std::span<const std::uint32_t> indices,
                      std::span<double> gradient) const;

  // The same in three parts, layer by layer, for one image: for a pipeline, where each layer is with another process.
  // Requires: `hidden` and `hidden_delta` have shape().hidden elements.

  // Writes what the hidden units give.
  void hidden_forward(const Image& image, std::span<float> hidden) const;
  // Adds the gradient of the output layer to `gradient`, writes that of the hidden units, and returns the loss.
  double output_step(std::span<const float> hidden, int label, std::span<float> hidden_delta,
                     std::span<double> gradient) const;
  // Adds the gradient of the hidden layer. Requires: `hidden` is what hidden_forward() gave.
  void hidden_backward(const Image& image, std::span<const float> hidden, std::span<const float> hidden_delta,
                       std::span<double> gradient) const;

  // The most likely class.
  int predict(const Image& image) const;

  std::span<float> parameters() noexcept { return parameters_; }
  std::span<const float> parameters() const noexcept { return parameters_; }
  const Shape& shape() const noexcept { return shape_; }

 private:
  std::vector<float> output_forward(std::span<const float> hidden) const;

  // Where each layer's part of the array begins: hidden weights, hidden biases, output weights, output biases.
  std::size_t hidden_bias() const noexcept { return std::size_t{shape_.inputs} * shape_.hidden; }
  std::size_t output_weight() const noexcept { return shape_.hidden_parameters(); }
  std::size_t output_bias() const noexcept { return output_weight() + std::size_t{shape_.hidden} * shape_.classes; }

  Shape shape_;
  std::vector<float> parameters_;
};

}  // namespace digits
