// What every command of colbench gets.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "colbench/measure.hpp"
#include "common/screen.hpp"

namespace col::colbench {

struct Invocation {
  std::vector<std::string> arguments;  // after the command's own name
  tools::Screen screen;
  Measure measure;  // measures, in its own ranks or in existing ones
};

// Each returns the exit code, and prints its results to stdout. Throws UsageError, col::Error, std::system_error,
// tools::WriteError; main() prints them in one line.
int run_measure(const Invocation& invocation);     // colbench COLL …
int run_compare(const Invocation& invocation);     // colbench compare A.json B.json
int run_noise(const Invocation& invocation);       // colbench noise [COLL]
int run_algorithms(const Invocation& invocation);  // colbench algorithms COLL
int run_tune(const Invocation& invocation);
int run_explain(const Invocation& invocation);
int run_simulate(const Invocation& invocation);
int run_draw(const Invocation& invocation);
int run_pairs(const Invocation& invocation);
int run_bisect(const Invocation& invocation);
int run_suite(const Invocation& invocation);
// Measures a backend that does nothing, with and without a check of its results. The check must refuse the first, and
// the physical bound must refuse the second.
int run_self_test(const Invocation& invocation);

}  // namespace col::colbench
