// What rank 0 is asked to measure, as text that crosses from process to process.
#pragma once

#include <string>
#include <vector>

#include "colbench/measure.hpp"

namespace col::colbench {

struct Order {
  Method method = {};
  int launch = 0;
  // 0: sample the cells. Else learn what the machine can do at their sizes, and time each kernel so many times.
  int calibrations = 0;
  std::vector<CellSpec> cells = {};
};

std::string encode(const Order& order);
// Throws UsageError if the text is not from encode().
Order decode_order(const std::string& text);

}  // namespace col::colbench
