#include "colcheck/engine/primitive.hpp"

#include <array>

namespace col::colcheck {
namespace {

constexpr std::array<std::string_view, kMessagesCount> kMessageNames = {"send_recv", "sendrecv", "recv_any", "batch"};

constexpr std::array<std::string_view, kOperatorCount> kOperators = {
    "sum", "product", "min", "max", "avg", "band", "bor", "bxor", "premul_sum", "user", "ordered"};

}  // namespace

std::optional<Collective> Primitive::collective() const {
  const Numbers all = numbers();
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!kCollectives[i].is_message && all[i] == number_) return static_cast<Collective>(i);
  }
  return std::nullopt;
}

std::optional<Messages> Primitive::messages() const {
  if (number_ < collectives()) return std::nullopt;
  return static_cast<Messages>(number_ - collectives());
}

std::string_view to_string(Primitive primitive) {
  if (const auto collective = primitive.collective()) return to_string(*collective);
  return kMessageNames.at(static_cast<std::size_t>(*primitive.messages()));
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

bool is_integer(DType dtype) {
  return row_of(dtype).is_integer();
}

bool is_narrow(DType dtype) {
  return row_of(dtype).is_narrow();
}

bool is_defined(Operator op, DType dtype) {
  const bool bitwise = op == Operator::band || op == Operator::bor || op == Operator::bxor;
  const bool orders = op == Operator::min || op == Operator::max;
  const bool user = op == Operator::user || op == Operator::ordered;
  const ElementKind kind = row_of(dtype).kind;
  if (kind == ElementKind::boolean) return bitwise || orders || user;
  if (kind == ElementKind::complex) return !bitwise && !orders;
  return !bitwise || is_integer(dtype);
}

}  // namespace col::colcheck
