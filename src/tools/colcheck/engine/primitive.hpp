// What can be asked of a group: the primitives, and the operators that reductions take.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include <col/types.hpp>

namespace col::colcheck {

enum class Primitive : std::uint8_t {
  allreduce,
  reduce,
  scan,
  exscan,
  reduce_scatter,
  reduce_scatterv,
  broadcast,
  allgather,
  allgatherv,
  gather,
  gatherv,
  scatter,
  scatterv,
  alltoall,
  alltoallv,
  barrier,
  send_recv,  // every rank sends to one and receives from another
  sendrecv,   // the same in one call
  recv_any,   // the root receives from every rank, itself included
  batch       // every rank sends to every rank
};
inline constexpr int kPrimitiveCount = 20;

std::string_view to_string(Primitive primitive);
// Nothing when there is none of that name.
std::optional<Primitive> primitive_from_string(std::string_view name);
// Nothing for messages.
std::optional<Collective> collective_of(Primitive primitive);
bool is_reduction(Primitive primitive);
bool is_rooted(Primitive primitive);
bool is_v_form(Primitive primitive);
bool has_in_place(Primitive primitive);
bool has_i_form(Primitive primitive);

// The built-in ones first, numbered as in ReduceOp.
enum class Operator : std::uint8_t {
  sum,
  product,
  min,
  max,
  avg,
  band,
  bor,
  bxor,
  premul_sum,  // with a scale of each rank's own
  user,        // addition modulo 127
  ordered      // the user's, and not commutative: composition of affine maps modulo 11
};
inline constexpr int kOperatorCount = 11;

std::string_view to_string(Operator op);
std::optional<Operator> operator_from_string(std::string_view name);
bool is_integer(DType dtype);
bool is_half(DType dtype);  // float16 and bfloat16
bool is_defined(Operator op, DType dtype);

}  // namespace col::colcheck
