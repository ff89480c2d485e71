// From the texts behind the options of colcheck to Options.
#pragma once

#include <span>
#include <string>

#include "colcheck/options.hpp"

namespace col::colcheck {

// What was written behind the options; empty: the option was not given.
struct OptionTexts {
  std::string soak, backends, require, device, ranks, only, skip, algorithms, seed, repro, timeout;
};

// Fills `options`, whose flags are set already. Throws UsageError.
void read_texts(const OptionTexts& texts, std::span<const Property* const> known, Options& options);

}  // namespace col::colcheck
