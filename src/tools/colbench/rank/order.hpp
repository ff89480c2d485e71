// What rank 0 must measure, as text that passes between processes.
#pragma once

#include <string>
#include <vector>

#include "colbench/measure.hpp"

namespace col::colbench {

struct Order {
  Method method = {};
  int launch = 0;
  // 0: sample the cells. Otherwise measure what the machine can do at their sizes, and time each kernel this many
  // times.
  int calibrations = 0;
  std::vector<CellSpec> cells = {};
};

std::string encode(const Order& order);
// Throws UsageError if the text is not from encode().
Order decode_order(const std::string& text);

}  // namespace col::colbench
