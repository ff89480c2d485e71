#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include <fmt/format.h>

#include <col/types.hpp>

#include "core/names.hpp"

namespace col {

namespace {

constexpr std::array<std::string_view, kReduceOpCount> kReduceOpNames = {"sum", "product", "min", "max",
                                                                         "avg", "band",    "bor", "bxor"};

}  // namespace

std::string_view to_string(ReduceOp op) noexcept {
  return core::name_at(kReduceOpNames, static_cast<std::size_t>(op));
}

ReduceOp reduce_op_from_string(std::string_view name) {
  return core::value_of<ReduceOp>(kReduceOpNames, name, "reduce op");
}

struct Op::User {
  UserFunction function;
  bool commutative;
  std::string name;
};

Op::Op(ReduceOp op) noexcept : op_(op) {}

Op Op::premul_sum(double scale) {
  Op op(ReduceOp::sum);
  op.kind_ = Kind::premul_sum;
  op.scale_ = scale;
  return op;
}

Op Op::user(UserFunction function, bool commutative, std::string name) {
  if (!function) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("Op::user('{}'): the function is empty; pass one that can be called", name));
  }
  Op op(ReduceOp::sum);
  op.kind_ = Kind::user;
  op.user_ = std::make_shared<const User>(User{std::move(function), commutative, std::move(name)});
  return op;
}

bool Op::commutative() const noexcept {
  return kind_ != Kind::user || user_->commutative;
}

const Op::UserFunction& Op::user_function() const {
  if (kind_ != Kind::user) {
    throw Error(ErrorCode::internal, fmt::format("Op::user_function: '{}' is no user op; check kind() first", name()));
  }
  return user_->function;
}

std::string_view Op::name() const noexcept {
  switch (kind_) {
    case Kind::premul_sum:
      return "premul_sum";
    case Kind::user:
      return user_->name;
    case Kind::builtin:
      break;
  }
  return to_string(op_);
}

}  // namespace col
