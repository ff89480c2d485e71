// From a case that fails to the smallest one that still does.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "colcheck/results.hpp"

namespace col::colcheck {

// Simpler cases, one step away, the boldest first. All are possible ones: a root is one of the ranks.
std::vector<Case> simpler(const Case& c);

// Goes from case to simpler case as long as `fails` says that one fails too. Asks at most `most_tries` times.
std::optional<CaseResult> shrink(const Case& c, int most_tries,
                                 const std::function<std::optional<CaseResult>(const Case&)>& fails);

}  // namespace col::colcheck
