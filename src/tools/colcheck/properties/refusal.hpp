// Calls that must be refused, the memory that they must not touch, and the group after them.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <span>
#include <string>

#include <col/group.hpp>

#include "colcheck/engine/case.hpp"

namespace col::colcheck {

// Where two pieces of memory of equal length differ: "byte 3 of the output is 0x1, not 0x2"; empty if they are equal.
std::string difference(std::string_view what, std::span<const std::byte> got, std::span<const std::byte> want);

// Makes the call. Returns an empty text if it throws invalid_argument with a message, otherwise what happened instead.
std::string refusal_problem(const std::function<void()>& call);

// For calls that must be refused: if they are not refused, and nobody else makes them, they end soon.
inline constexpr Duration kRefusedTimeout = std::chrono::seconds(2);

// Runs the case, which is legal, after calls were refused in its group. `problem` says whether the refusals were right;
// if it is not empty, it is the answer. Otherwise the answer is what is wrong now. Throws std::runtime_error with the
// answer if the group cannot be used any more.
std::string problem_or_next(std::string problem, Group& group, const Case& c);

// How many elements input and output have on a rank that has both, if all blocks have c.count.
struct Sides {
  std::size_t in = 0, out = 0;
};
Sides sides_of(const Case& c, int size);

}  // namespace col::colcheck
