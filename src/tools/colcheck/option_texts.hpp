// Turns the values of colcheck's options into Options.
#pragma once

#include <span>
#include <string>

#include "colcheck/options.hpp"

namespace col::colcheck {

// The values of the options; empty: the option was not given.
struct OptionTexts {
  std::string soak, backends, require, device, ranks, only, skip, algorithms, seed, repro, timeout;
};

// Fills `options`, whose flags are already set. Throws UsageError.
void read_texts(const OptionTexts& texts, std::span<const Property* const> known, Options& options);

}  // namespace col::colcheck
