#include "colcheck/engine/primitive.hpp"

#include <algorithm>
#include <array>

namespace col::colcheck {
namespace {

constexpr std::array<std::string_view, kPrimitiveCount> kPrimitives = {
    "allreduce",  "reduce",   "scan",     "exscan",  "reduce_scatter", "reduce_scatterv", "broadcast", "allgather",
    "allgatherv", "gather",   "gatherv",  "scatter", "scatterv",       "alltoall",        "alltoallv", "barrier",
    "send_recv",  "sendrecv", "recv_any", "batch"};

constexpr std::array<std::string_view, kOperatorCount> kOperators = {
    "sum", "product", "min", "max", "avg", "band", "bor", "bxor", "premul_sum", "user", "ordered"};

template <class Enumeration, std::size_t kCount>
std::optional<Enumeration> find(const std::array<std::string_view, kCount>& names, std::string_view name) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) return std::nullopt;
  return static_cast<Enumeration>(found - names.begin());
}

}  // namespace

std::string_view to_string(Primitive primitive) {
  return kPrimitives[static_cast<std::size_t>(primitive)];
}

std::optional<Primitive> primitive_from_string(std::string_view name) {
  return find<Primitive>(kPrimitives, name);
}

std::optional<Collective> collective_of(Primitive primitive) {
  if (primitive > Primitive::barrier) return std::nullopt;
  return collective_from_string(to_string(primitive));
}

bool is_reduction(Primitive primitive) {
  const auto collective = collective_of(primitive);
  return collective && row_of(*collective).reduces();
}

bool is_rooted(Primitive primitive) {
  const auto collective = collective_of(primitive);
  return collective ? row_of(*collective).rooted : primitive == Primitive::recv_any;
}

bool is_v_form(Primitive primitive) {
  const auto collective = collective_of(primitive);
  return collective && row_of(*collective).has_counts();
}

bool has_in_place(Primitive primitive) {
  const auto collective = collective_of(primitive);
  return collective && row_of(*collective).has_in_place();
}

bool has_i_form(Primitive primitive) {
  return primitive != Primitive::sendrecv;
}

std::string_view to_string(Operator op) {
  return kOperators[static_cast<std::size_t>(op)];
}

std::optional<Operator> operator_from_string(std::string_view name) {
  return find<Operator>(kOperators, name);
}

bool is_integer(DType dtype) {
  return dtype <= DType::uint64;
}

bool is_half(DType dtype) {
  return dtype == DType::float16 || dtype == DType::bfloat16;
}

bool is_defined(Operator op, DType dtype) {
  const bool bitwise = op == Operator::band || op == Operator::bor || op == Operator::bxor;
  return !bitwise || is_integer(dtype);
}

}  // namespace col::colcheck
