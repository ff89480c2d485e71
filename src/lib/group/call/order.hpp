// Options::order: the order that a call asks for, and what its ranks contribute.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <col/options.hpp>
#include <col/request.hpp>

#include "group/call/checks.hpp"

namespace col::group {

// The order of a call: its own, else that of its group. Throws invalid_argument if no call has that order.
Order order_of(Collective collective, const Options& options, Order of_group);

// The elements of one contribution of a call in the tree's order. Nothing where this rank does not know it: away from
// the root of a reduce, which alone has an output.
std::optional<std::size_t> length_of_one(const Request& request, const Shape& shape);

// The shares of a reduce by what its ranks have told one another, in two numbers each: the elements that they give,
// and, of the root, those of one contribution. Throws mismatch if a rank does not give whole contributions.
std::vector<std::size_t> shares_of_reduce(std::span<const std::size_t> told, int root, std::string_view group);

// "rank 0 gives 3, ranks 1-3 give 2"
std::string shares_text(std::span<const std::size_t> shares);

// The fault in the shares of all ranks; empty if there is none. `contributions`: as the call says.
std::string problem_with(std::span<const std::size_t> shares, std::size_t contributions);

}  // namespace col::group
