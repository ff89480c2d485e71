// colcheck without another launcher: it starts its own ranks.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "colcheck/options.hpp"

namespace col::colcheck {

// Finds what cannot be done before any rank starts. Throws UsageError if something that was required is missing.
void check_requirements(const Options& options);

// Starts as many ranks of this program as `options` need, with these arguments, and waits for them. Returns the exit
// code. `title` is the memory of argv (JobSpec::title). Requires: the caller has one thread.
int drive(const Options& options, const std::vector<std::string>& arguments, std::span<char> title);

}  // namespace col::colcheck
