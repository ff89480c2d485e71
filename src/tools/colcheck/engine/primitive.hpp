// The primitives of a group, and the operators of reductions.
#pragma once

#include <algorithm>
#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>

#include <col/types.hpp>

namespace col::colcheck {

// What is done with messages.
enum class Messages : std::uint8_t {
  send_recv,  // every rank sends to one and receives from another
  sendrecv,   // the same in one call
  recv_any,   // the root receives from every rank, itself included
  batch       // every rank sends to every rank
};
inline constexpr int kMessagesCount = 4;

// A collective, or one of Messages. They are numbered from 0, in the order of reports: reductions of vectors, then of
// blocks, then the other collectives, then messages.
class Primitive {
 public:
  using enum Collective;
  using enum Messages;

  constexpr Primitive(Collective collective) : number_(numbers()[static_cast<std::size_t>(collective)]) {}
  constexpr Primitive(Messages messages)
      : number_(static_cast<std::uint8_t>(collectives() + static_cast<std::uint8_t>(messages))) {}
  template <class Number>
  requires std::is_integral_v<Number>
  constexpr explicit Primitive(Number number) : number_(static_cast<std::uint8_t>(number)) {}

  constexpr explicit operator std::size_t() const { return number_; }
  constexpr auto operator<=>(const Primitive&) const = default;
  // Nothing for messages.
  std::optional<Collective> collective() const;
  // Nothing for collectives.
  std::optional<Messages> messages() const;

  static constexpr std::uint8_t collectives() {
    return static_cast<std::uint8_t>(
        std::ranges::count_if(kCollectives, [](const CollectiveRow& row) { return !row.is_message; }));
  }

 private:
  using Numbers = std::array<std::uint8_t, kCollectiveCount>;
  static constexpr Numbers numbers() {
    Numbers numbers{};
    std::uint8_t next = 0;
    for (const int place : {0, 1, 2}) {
      for (std::size_t i = 0; i < kCollectives.size(); ++i) {
        const CollectiveRow& row = kCollectives[i];
        const int its = !row.reduces() ? 2 : row.out == Extent::vector ? 0 : 1;
        if (!row.is_message && its == place) numbers[i] = next++;
      }
    }
    return numbers;
  }

  std::uint8_t number_;
};
inline constexpr int kPrimitiveCount = Primitive::collectives() + kMessagesCount;

std::string_view to_string(Primitive primitive);
inline std::optional<Collective> collective_of(Primitive primitive) {
  return primitive.collective();
}
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
  premul_sum,  // each rank has its own scale
  user,        // addition modulo 127
  ordered      // a user's operator that is not commutative: composition of affine maps modulo 11
};
inline constexpr int kOperatorCount = 11;

std::string_view to_string(Operator op);
bool is_integer(DType dtype);
bool is_narrow(DType dtype);  // a float of 8 or 16 bits
bool is_defined(Operator op, DType dtype);

}  // namespace col::colcheck
