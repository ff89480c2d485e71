#include "colcheck/engine/case.hpp"

#include <array>
#include <bit>
#include <utility>

#include <fmt/format.h>

#include "colcheck/engine/mix.hpp"

namespace col::colcheck {

std::string describe(const Case& c) {
  std::string text(to_string(c.primitive));
  if (c.primitive != Primitive::barrier) text += fmt::format(" of {} {}", c.count, col::to_string(c.dtype));
  if (is_reduction(c.primitive)) text += fmt::format(", {}", to_string(c.op));
  if (is_rooted(c.primitive)) text += fmt::format(", root {}", c.root);
  if (c.in_place) text += ", in place";
  if (c.asynchronous) text += ", asynchronous";
  if (!c.algorithm.empty()) text += fmt::format(", by {}", c.algorithm);
  if (c.devices == Devices::cuda) text += ", on GPUs";
  if (c.devices == Devices::mixed) text += ", on the host and on GPUs";
  return text;
}

int tag_of(Primitive primitive, std::size_t number) {
  return primitive == Primitive::recv_any ? 100 + static_cast<int>(number) : static_cast<int>(number % 3);
}

std::size_t block_count(const Case& c, int from, int to) {
  if (!is_v_form(c.primitive)) return c.count;
  // In place, a rank must receive as much as it sends.
  if (c.primitive == Primitive::alltoallv && c.in_place && from > to) std::swap(from, to);
  return mix(c.seed, static_cast<std::uint64_t>(from) + 100, static_cast<std::uint64_t>(to)) % (2 * c.count + 1);
}

int shift_of(const Case& c, int size) {
  return size == 1 ? 0 : 1 + static_cast<int>(mix(c.seed, 7) % static_cast<std::uint64_t>(size - 1));
}

int destination_of(const Case& c, int rank, int size) {
  return (rank + shift_of(c, size)) % size;
}

int source_of(const Case& c, int rank, int size) {
  return (rank + size - shift_of(c, size)) % size;
}

std::size_t count_of(int count_class, int ranks, std::uint64_t seed) {
  constexpr std::array<std::size_t, 4> kPrimes = {31, 131, 1009, 5003};
  const auto p = static_cast<std::size_t>(ranks);
  return std::array<std::size_t, kCountClasses>{
      0, 1, p - 1, p, p + 1, kPrimes[mix(seed) % kPrimes.size()]}[static_cast<std::size_t>(count_class)];
}

bool has_one_result(const Case& c) {
  const bool scales_floats = c.op == Operator::avg && !is_integer(c.dtype) && is_reduction(c.primitive);
  return c.backend != "nccl" || !scales_floats || std::has_single_bit(static_cast<unsigned>(c.ranks));
}

std::vector<const Algorithm*> candidates(const Case& c, int ranks) {
  std::vector<const Algorithm*> found;
  const auto collective = collective_of(c.primitive);
  if (!collective) return found;
  const bool accumulates = c.op == Operator::sum || c.op == Operator::product || c.op == Operator::avg;
  const bool scales = c.op == Operator::premul_sum;
  PlanRequest request{.collective = *collective, .size = ranks, .root = c.root, .count = c.count};
  request.widens = is_reduction(c.primitive) && is_half(c.dtype) && (accumulates || scales);
  request.wide_input = request.widens && scales;
  request.in_place = c.in_place;
  const bool commutes = !is_reduction(c.primitive) || c.op != Operator::ordered;
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.collective != *collective || (!commutes && algorithm.order == FoldOrder::any)) continue;
    if (!algorithm.refuse(request)) found.push_back(&algorithm);
  }
  return found;
}

}  // namespace col::colcheck
