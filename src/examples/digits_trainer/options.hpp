// The command line of digits_trainer.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <variant>

#include "agreement.hpp"

namespace digits {

struct TrainerOptions {
  std::uint64_t epochs = 15;  // to train in this run; with go_on, in all runs together
  // Unset: what the file given to --resume says, else the defaults of TrainingState.
  std::optional<std::uint64_t> batch;
  std::optional<double> learning_rate;
  std::optional<std::uint64_t> seed;
  std::filesystem::path data;  // empty: find_data()
  std::filesystem::path model = "digits.model";
  bool save = true;
  std::filesystem::path resume;  // empty: start from the beginning
  bool on_gpu = false;           // gradients are reduced in the memory of GPUs
  bool survives = false;         // goes on without ranks that are lost
  bool go_on = false;            // resume from `model` where it exists, and write it after every epoch
};

// A text to print before a good end: --help, --version.
struct Information {
  std::string text;
};

// Does not print.
std::variant<TrainerOptions, Information, Problem> parse_options(int argc, const char* const* argv);

}  // namespace digits
