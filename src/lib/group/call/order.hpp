// Options::order: the order that a call asks for, and what its ranks contribute.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include <col/options.hpp>
#include <col/request.hpp>

namespace col::group {

// The order of a call: its own, else that of its group. Throws invalid_argument if no call has that order.
Order order_of(Collective collective, const Options& options, Order of_group);

// How many contributions a rank gives to a call in the tree's order. Requires: check() has passed.
std::size_t share_of(const Request& request);

// "rank 0 gives 3, ranks 1-3 give 2"
std::string shares_text(std::span<const std::size_t> shares);

// The fault in the shares of all ranks; empty if there is none. `contributions`: as the call says.
std::string problem_with(std::span<const std::size_t> shares, std::size_t contributions);

}  // namespace col::group
