#include "conformance/table/cases.hpp"

#include <random>

#include <fmt/format.h>

namespace col::test {
namespace {

constexpr std::array<std::string_view, kPrimitiveCount> kPrimitives = {
    "allreduce",  "reduce",   "scan",     "exscan",  "reduce_scatter", "reduce_scatterv", "broadcast", "allgather",
    "allgatherv", "gather",   "gatherv",  "scatter", "scatterv",       "alltoall",        "alltoallv", "barrier",
    "send/recv",  "sendrecv", "recv_any", "batch"};

constexpr std::array<std::string_view, kOperatorCount> kOperators = {
    "sum", "product", "min", "max", "avg", "band", "bor", "bxor", "premul_sum", "user", "ordered"};

}  // namespace

std::string_view to_string(Primitive primitive) {
  return kPrimitives[static_cast<std::size_t>(primitive)];
}

std::optional<Collective> collective_of(Primitive primitive) {
  if (primitive > Primitive::barrier) return std::nullopt;
  return collective_from_string(to_string(primitive));
}

bool is_reduction(Primitive primitive) {
  return primitive <= Primitive::reduce_scatterv;
}

bool is_rooted(Primitive primitive) {
  switch (primitive) {
    case Primitive::reduce:
    case Primitive::broadcast:
    case Primitive::gather:
    case Primitive::gatherv:
    case Primitive::scatter:
    case Primitive::scatterv:
    case Primitive::recv_any:
      return true;
    default:
      return false;
  }
}

bool is_v_form(Primitive primitive) {
  return primitive <= Primitive::barrier && to_string(primitive).ends_with('v');
}

bool has_in_place(Primitive primitive) {
  return primitive < Primitive::barrier && primitive != Primitive::broadcast;
}

bool has_i_form(Primitive primitive) {
  return primitive != Primitive::sendrecv;
}

std::string_view to_string(Operator op) {
  return kOperators[static_cast<std::size_t>(op)];
}

bool is_integer(DType dtype) {
  return dtype <= DType::uint64;
}

bool is_defined(Operator op, DType dtype) {
  const bool bitwise = op == Operator::band || op == Operator::bor || op == Operator::bxor;
  return !bitwise || is_integer(dtype);
}

std::string describe(const Case& c) {
  std::string text(to_string(c.primitive));
  if (c.primitive != Primitive::barrier) text += fmt::format(" of {} {}", c.count, col::to_string(c.dtype));
  if (is_reduction(c.primitive)) text += fmt::format(", {}", to_string(c.op));
  if (is_rooted(c.primitive)) text += fmt::format(", root {}", c.root);
  if (c.in_place) text += ", in place";
  if (c.asynchronous) text += ", asynchronous";
  if (!c.algorithm.empty()) text += fmt::format(", by {}", c.algorithm);
  return text + fmt::format(", seed {:#x}", c.seed);
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

std::vector<const Algorithm*> candidates(const Case& c, int ranks) {
  std::vector<const Algorithm*> found;
  const auto collective = collective_of(c.primitive);
  if (!collective) return found;
  const bool half = c.dtype == DType::float16 || c.dtype == DType::bfloat16;
  const bool accumulates = c.op == Operator::sum || c.op == Operator::product || c.op == Operator::avg;
  const bool scales = c.op == Operator::premul_sum;
  PlanRequest request{.collective = *collective, .size = ranks, .root = c.root, .count = c.count};
  request.widens = is_reduction(c.primitive) && half && (accumulates || scales);
  request.wide_input = request.widens && scales;
  request.in_place = c.in_place;
  const bool commutes = !is_reduction(c.primitive) || c.op != Operator::ordered;
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.collective != *collective || (!commutes && algorithm.order == FoldOrder::any)) continue;
    if (!algorithm.refuse(request)) found.push_back(&algorithm);
  }
  return found;
}

// splitmix64 of the three.
std::uint64_t mix(std::uint64_t seed, std::uint64_t a, std::uint64_t b) {
  std::uint64_t x = seed;
  for (const std::uint64_t next : {a, b}) {
    x += 0x9e3779b97f4a7c15ULL + next * 0xd1342543de82ef95ULL;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
    x ^= x >> 31;
  }
  return x;
}

std::uint64_t fresh_seed() {
  std::random_device device;
  return (std::uint64_t{device()} << 32) | device();
}

}  // namespace col::test
