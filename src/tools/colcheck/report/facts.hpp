// The facts of a run in words, for the reports that are read by people.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "colcheck/results.hpp"

namespace col::colcheck {

// Name and value, in the order in which a reader wants them; none with an empty value.
std::vector<std::pair<std::string, std::string>> facts_of(const Results& results);

// "1-9, 16" of ascending numbers.
std::string ranges(const std::vector<int>& numbers);

// "rank 2: what is wrong".
std::string found_by(const CaseResult& result);

}  // namespace col::colcheck
