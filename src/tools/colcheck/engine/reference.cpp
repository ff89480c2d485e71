#include "colcheck/engine/reference.hpp"

#include <algorithm>
#include <cstring>

#include "colcheck/engine/element.hpp"
#include "colcheck/engine/fold.hpp"
#include "colcheck/engine/mix.hpp"
#include "common/gpu.hpp"

namespace col::colcheck {
namespace {

template <class T>
T from_bits(std::uint64_t bits) {
  if constexpr (is_narrow_v<T>) {
    return T::from_bits(static_cast<decltype(T::bits)>(bits));
  } else if constexpr (std::is_same_v<T, bool>) {
    return bits % 2 == 1;
  } else if constexpr (is_complex_v<T>) {
    return {static_cast<typename T::value_type>(static_cast<std::int32_t>(bits)),
            static_cast<typename T::value_type>(static_cast<std::int32_t>(bits >> 32))};
  } else {
    T value;
    std::memcpy(&value, &bits, sizeof value);  // the low bytes
    return value;
  }
}

// ---- The user's operators: both keep to numbers that the type can hold; one of 8 bits holds those up to 8

template <class T>
constexpr int kModulus = is_float8_v<T> ? 7 : 127;
template <class T>
constexpr int kPrime = is_float8_v<T> ? 3 : 11;

template <class T>
int add(int left, int right) {
  return (left + right) % kModulus<T>;
}

// x -> a x + b modulo kPrime, with a in [1, kPrime), as one number.
template <class T>
int pack(int a, int b) {
  return (a % kPrime<T>)*kPrime<T> + b % kPrime<T>;
}

// First `left`, then `right`: a group that does not commute, so that an exchange of ranks, or one counted twice or left
// out, changes the result.
template <class T>
int compose(int left, int right) {
  const int a = right / kPrime<T>;
  return pack<T>(left / kPrime<T> * a, left % kPrime<T> * a + right % kPrime<T>);
}

template <class T>
int whole(T value) {
  return static_cast<int>(value_of_element(value));
}

template <class T>
T number(int value) {
  return element_of<T>(static_cast<float>(value));
}

template <bool kCommutes>
void user_function(const void* left, const void* right, void* result, std::size_t count, DType dtype) {
  with_element(dtype, [&](auto element) {
    using T = decltype(element);
    for (std::size_t i = 0; i < count; ++i) {
      const int x = whole(static_cast<const T*>(left)[i]), y = whole(static_cast<const T*>(right)[i]);
      static_cast<T*>(result)[i] = number<T>(kCommutes ? add<T>(x, y) : compose<T>(x, y));
    }
  });
}

// ---- Inputs

double scale_of(DType dtype, int rank) {
  constexpr std::array<double, 3> kWhole = {2, -3, 5}, kBroken = {0.5, -1.5, 3};
  return (is_integer(dtype) ? kWhole : kBroken)[static_cast<std::size_t>(rank) % 3];
}

// Whether partial sums are rounded to the type.
bool rounds(const Case& c) {
  return is_narrow(c.dtype) && tools::moves_device_memory(c.backend);
}

// Of 8 bits, only sums of four ranks' ones, also scaled, are exact then: the other ranks add nothing.
bool is_zero(const Case& c, int rank) {
  return rounds(c) && size_of(c.dtype) == 1 && rank >= 4;
}

template <class T>
T element(const Case& c, int rank, std::uint64_t index) {
  const std::uint64_t random = mix(c.seed, static_cast<std::uint64_t>(rank), index);
  if (!is_reduction(c.primitive)) return from_bits<T>(random);
  if (c.op == Operator::user) return number<T>(static_cast<int>(random % kModulus<T>));
  if (c.op == Operator::ordered)
    return number<T>(pack<T>(1 + static_cast<int>(random % (kPrime<T> - 1)), static_cast<int>(random >> 32) & 0xffff));
  if constexpr (std::is_integral_v<T>) {
    return from_bits<T>(c.op == Operator::product ? random | 1 : random);  // even factors soon leave nothing but zeros
  } else if (c.op == Operator::product) {
    constexpr std::array<float, 6> kFactors = {1, -1, 2, -2, 0.5f, -0.5f};
    const float factor = kFactors[random % (rounds(c) ? 2 : kFactors.size())];
    const float value = rank % 4 == 0 ? 3 * factor : factor;
    if constexpr (is_complex_v<T>) {
      // Rank 0 alone has two parts: then no part of a product that it is in is 0, of which there are two.
      if (rank == 0) return {value, 2 * value};
      if ((random >> 40) % 2 == 0) return {0, value};
    }
    return static_cast<T>(value);
  } else {
    if (is_zero(c, rank)) return T{};
    const std::uint64_t most = !rounds(c) ? 60 : size_of(c.dtype) == 1 ? 1 : 2;
    const float value = static_cast<float>(random % most + 1);  // no zero: there are two of them
    const float number = (random >> 32) % 2 == 0 ? value : -value;
    if constexpr (is_complex_v<T>)
      return {number, static_cast<float>((random >> 40) % 60 + 1)};
    else
      return static_cast<T>(number);
  }
}

// ---- Parts

// A batch is an alltoallv in messages, and a recv_any a gatherv.
tools::ReferenceCall reference_call_of(const Case& c, int size, std::size_t (*count)(const Case&, int, int)) {
  const Collective collective = c.primitive == Primitive::batch      ? Collective::alltoallv
                                : c.primitive == Primitive::recv_any ? Collective::gatherv
                                                                     : *collective_of(c.primitive);
  tools::ReferenceCall call{.collective = collective, .size = size, .root = c.root, .count = c.count, .ops = {}};
  if (collective == Collective::alltoallv) {
    for (int from = 0; from < size; ++from)
      for (int to = 0; to < size; ++to) call.counts.push_back(count(c, from, to));
  } else if (is_v_form(c.primitive) || c.primitive == Primitive::recv_any) {
    for (int rank = 0; rank < size; ++rank) call.counts.push_back(count(c, rank, rank));
  }
  for (int rank = 0; rank < size; ++rank) call.ops.push_back(op_of(c, rank));
  return call;
}

// Appends `count` elements: element(i).
template <class Element>
void append_block(Bytes& bytes, std::size_t count, Element element) {
  const std::size_t begin = bytes.size(), size = sizeof element(0);
  bytes.resize(begin + count * size);
  for (std::size_t i = 0; i < count; ++i) {
    const auto value = element(i);
    std::memcpy(bytes.data() + begin + i * size, &value, size);
  }
}

// The part of a call of elements of type T: value(rank, block, i) is element i of a block that a rank brings.
template <class T, class Value>
Part part_with(const tools::ReferenceCall& call, int rank, const Value& value) {
  const tools::Outline outline = outline_of(call, rank);
  Part part{.reads = outline.reads, .writes = outline.writes, .own_offset = outline.own_offset * sizeof(T)};
  if (tools::brings_blocks(call.collective) && part.reads) part.in_counts = outline.given;
  if (tools::gets_blocks(call.collective) && part.writes) part.out_counts = outline.gotten_counts();
  for (std::size_t block = 0; block < outline.given.size(); ++block) {
    append_block(part.input, outline.given[block],
                 [&](std::size_t i) { return value(outline.giver, static_cast<int>(block), i); });
  }
  for (const tools::Segment& from : outline.gotten)
    append_block(part.output, from.count, [&](std::size_t i) { return tools::element_at<T>(call, from, i, value); });
  return part;
}

}  // namespace

Part part_of(const Case& c, int rank, int size, std::size_t (*count)(const Case&, int, int)) {
  const bool rotates = c.primitive == Primitive::send_recv || c.primitive == Primitive::sendrecv;
  return with_element(c.dtype, [&](auto zero) {
    using T = decltype(zero);
    // The number of the block is in the index of its elements.
    const auto value = [&](int from, int block, std::size_t i) {
      return element<T>(c, from, (static_cast<std::uint64_t>(block) << 32) + i);
    };
    if (!rotates) return part_with<T>(reference_call_of(c, size, count), rank, value);
    Part part;
    append_block(part.input, c.count, [&](std::size_t i) { return value(rank, 0, i); });
    append_block(part.output, c.count, [&](std::size_t i) { return value(source_of(c, rank, size), 0, i); });
    return part;
  });
}

Op op_of(const Case& c, int rank) {
  if (c.op == Operator::premul_sum) return Op::premul_sum(scale_of(c.dtype, rank));
  if (c.op == Operator::user) return Op::user(&user_function<true>, true, "addition");
  if (c.op == Operator::ordered) return Op::user(&user_function<false>, false, "composition");
  return static_cast<ReduceOp>(c.op);
}

}  // namespace col::colcheck
