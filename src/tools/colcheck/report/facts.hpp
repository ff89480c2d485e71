// The facts of a run in words, for reports that people read.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "colcheck/results.hpp"

namespace col::colcheck {

// Names and values, in the order in which a reader wants them. No value is empty.
std::vector<std::pair<std::string, std::string>> facts_of(const Results& results);

// "1-9, 16" of ascending numbers.
std::string ranges(const std::vector<int>& numbers);

// "rank 2: what is wrong".
std::string found_by(const CaseResult& result);

}  // namespace col::colcheck
