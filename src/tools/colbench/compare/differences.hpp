// What is different about two runs besides what they were to show.
#pragma once

#include <string>
#include <vector>

#include "colbench/results.hpp"

namespace col::colbench {

// One line for each: "measured on different hosts: A on n1, B on n2". The machine, the method, the environment, and
// that one of them ended early. Empty when only time lies between them. Pure.
std::vector<std::string> differences(const Results& a, const Results& b);

}  // namespace col::colbench
