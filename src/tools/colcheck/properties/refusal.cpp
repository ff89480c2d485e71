#include "colcheck/properties/refusal.hpp"

#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>

#include "colcheck/engine/call.hpp"

namespace col::colcheck {

std::string difference(std::string_view what, std::span<const std::byte> got, std::span<const std::byte> want) {
  const auto [here, there] = std::mismatch(got.begin(), got.end(), want.begin());
  if (here == got.end()) return {};
  return fmt::format("byte {} of {} is {:#x}, not {:#x}", here - got.begin(), what, std::to_integer<unsigned>(*here),
                     std::to_integer<unsigned>(*there));
}

std::string refusal_problem(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::invalid_argument)
      return std::string("the call had to be refused as invalid_argument, but: ") + error.what();
    return error.message().empty() ? "the call was refused without a message" : "";
  }
  return "the call had to be refused as invalid_argument, but was not";
}

std::string problem_or_next(std::string problem, Group& group, const Case& c) {
  try {
    const std::string next = run_case(group, c);
    return problem.empty() && !next.empty() ? "after a refused call, " + next : problem;
  } catch (const Error& error) {
    throw std::runtime_error(problem.empty() ? std::string("after a refused call, ") + error.what() : problem);
  }
}

Sides sides_of(const Case& c, int size) {
  const std::size_t whole = c.count * static_cast<std::size_t>(size);
  const auto collective = collective_of(c.primitive);
  const auto extent = [&](Extent side) { return side == Extent::blocks ? whole : c.count; };
  if (collective) return {extent(row_of(*collective).in), extent(row_of(*collective).out)};
  return {c.primitive == Primitive::batch ? whole : c.count,
          c.primitive == Primitive::batch || c.primitive == Primitive::recv_any ? whole : c.count};
}

}  // namespace col::colcheck
