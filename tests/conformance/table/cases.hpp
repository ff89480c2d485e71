// What can be asked of a group: the primitives, operators and element types, and one call of them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <col/group.hpp>

namespace col::test {

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
bool is_integer(DType dtype);
bool is_defined(Operator op, DType dtype);

struct Case {
  Primitive primitive = Primitive::barrier;
  DType dtype = DType::uint8;
  Operator op = Operator::sum;
  std::size_t count = 0;  // of the vector, or of a block; v-forms: of an average block
  int root = 0;
  bool in_place = false;
  bool asynchronous = false;
  std::string algorithm = {};  // empty: the default
  int tag = 0;                 // messages; see tag_of()
  std::uint64_t seed = 0;      // of the inputs, the counts of v-forms, and whatever else may be so or otherwise
};
std::string describe(const Case& c);

// The tag for case `number` of a group: few, so that order within a tag matters; recv_any has one to itself, as it must
// not meet what a faster rank sends in the next case.
int tag_of(Primitive primitive, std::size_t number);

// Elements from rank `from` to rank `to` (the own rank where there is one direction only).
std::size_t block_count(const Case& c, int from, int to);

// Whom a rank sends to, and receives from, in send_recv and sendrecv: a rotation.
int shift_of(const Case& c, int size);
int destination_of(const Case& c, int rank, int size);
int source_of(const Case& c, int rank, int size);

// 0, 1, p-1, p, p+1, a prime that `seed` chooses.
inline constexpr int kCountClasses = 6;
std::size_t count_of(int count_class, int ranks, std::uint64_t seed);

// Registered algorithms that can serve the case on that many ranks.
std::vector<const Algorithm*> candidates(const Case& c, int ranks);

// A number that looks random and is the same for the same arguments.
std::uint64_t mix(std::uint64_t seed, std::uint64_t a = 0, std::uint64_t b = 0);

// A number that is new in every run, for tests that print it.
std::uint64_t fresh_seed();

// Calls body(T{}) for the C++ type of a DType.
template <class Body>
auto with_element(DType dtype, Body body) {
  switch (dtype) {
    case DType::int8:
      return body(std::int8_t{});
    case DType::uint8:
      return body(std::uint8_t{});
    case DType::int32:
      return body(std::int32_t{});
    case DType::uint32:
      return body(std::uint32_t{});
    case DType::int64:
      return body(std::int64_t{});
    case DType::uint64:
      return body(std::uint64_t{});
    case DType::float16:
      return body(float16{});
    case DType::bfloat16:
      return body(bfloat16{});
    case DType::float32:
      return body(float{});
    default:
      return body(double{});
  }
}

}  // namespace col::test
