// colcheck started by itself: it starts its own ranks.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "colcheck/options.hpp"

namespace col::colcheck {

// Says what cannot be done before any rank starts: throws UsageError for something that was required and is not there.
void check_requirements(const Options& options);

// Starts as many ranks of this program as `options` need, with these arguments, and waits for them. Returns the exit
// code. `title` is the memory of argv (JobSpec::title). Requires: the caller has one thread.
int drive(const Options& options, const std::vector<std::string>& arguments, std::span<char> title);

}  // namespace col::colcheck
