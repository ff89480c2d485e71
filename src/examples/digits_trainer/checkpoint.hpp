// The model file: everything that training needs to go on as if it had never stopped.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "model.hpp"

namespace digits {

struct TrainingState {
  Shape shape;
  std::uint64_t epochs = 0;  // trained so far
  std::uint64_t seed = 1;
  std::uint64_t batch = 128;  // images, over all ranks
  double learning_rate = 0.1;
  std::vector<float> parameters;
  std::vector<float> velocity;  // momentum: one per parameter
};

// A state before the first epoch.
TrainingState fresh_state(const Shape& shape, std::uint64_t seed, std::uint64_t batch, double learning_rate);

// The file that save_checkpoint() would write: `path`, or what it links to. Throws std::runtime_error when there is
// something else than a regular file, or no folder for one: worth a look before the training.
std::filesystem::path checkpoint_target(const std::filesystem::path& path);

// Writes beside checkpoint_target() and renames into place: a reader, or a crash, never sees half of a file. Throws
// std::runtime_error saying which file and why.
void save_checkpoint(const TrainingState& state, const std::filesystem::path& path);

// Throws std::runtime_error for a file that cannot be read, is no checkpoint, is cut short or damaged, or is of another
// shape than `expected`.
TrainingState load_checkpoint(const std::filesystem::path& path, const Shape& expected);

}  // namespace digits
