// Differences between two runs, other than the measured ones.
#pragma once

#include <string>
#include <vector>

#include "colbench/results.hpp"

namespace col::colbench {

// One line for each: "measured on different hosts: A on n1, B on n2". It covers the machine, the method, the
// environment, and whether one of them ended early. Empty if the runs differ only in time. Pure.
std::vector<std::string> differences(const Results& a, const Results& b);

}  // namespace col::colbench
