#include "colcheck/engine/reference.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "colcheck/engine/element.hpp"
#include "colcheck/engine/mix.hpp"

namespace col::colcheck {
namespace {

template <class T>
constexpr bool is_half_v = std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>;

// What sums of T are kept in.
template <class T>
using Wide = std::conditional_t<is_half_v<T>, float, T>;

template <class T>
T from_bits(std::uint64_t bits) {
  if constexpr (is_half_v<T>) {
    return T::from_bits(static_cast<std::uint16_t>(bits));
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

// ---- The user's operators: both keep to numbers that every type can hold

constexpr int kModulus = 127;
constexpr int kPrime = 11;

int add(int left, int right) {
  return (left + right) % kModulus;
}

// x -> a x + b modulo kPrime, with a in [1, kPrime), as one number.
int pack(int a, int b) {
  return (a % kPrime) * kPrime + b % kPrime;
}

// First `left`, then `right`: a group that does not commute, so that an exchange of ranks, or one counted twice or left
// out, changes the result.
int compose(int left, int right) {
  const int a = right / kPrime;
  return pack(left / kPrime * a, left % kPrime * a + right % kPrime);
}

template <class T>
int whole(T value) {
  return static_cast<int>(value_of_element(value));
}

template <class T>
T number(int value) {
  return element_of<T>(static_cast<float>(value));
}

template <int (*kFunction)(int, int)>
void user_function(const void* left, const void* right, void* result, std::size_t count, DType dtype) {
  with_element(dtype, [&](auto element) {
    using T = decltype(element);
    for (std::size_t i = 0; i < count; ++i) {
      const auto x = static_cast<const T*>(left)[i], y = static_cast<const T*>(right)[i];
      static_cast<T*>(result)[i] = number<T>(kFunction(whole(x), whole(y)));
    }
  });
}

// ---- Inputs

double scale_of(DType dtype, int rank) {
  constexpr std::array<double, 3> kWhole = {2, -3, 5}, kBroken = {0.5, -1.5, 3};
  return (is_integer(dtype) ? kWhole : kBroken)[static_cast<std::size_t>(rank) % 3];
}

// Whether partial sums are kept in 16 bits.
bool is_narrow(const Case& c) {
  return is_half(c.dtype) && c.backend == "nccl";
}

template <class T>
T element(const Case& c, int rank, std::uint64_t index) {
  const std::uint64_t random = mix(c.seed, static_cast<std::uint64_t>(rank), index);
  if (!is_reduction(c.primitive)) return from_bits<T>(random);
  if (c.op == Operator::user) return number<T>(static_cast<int>(random % kModulus));
  if (c.op == Operator::ordered)
    return number<T>(pack(1 + static_cast<int>(random % (kPrime - 1)), static_cast<int>(random >> 32) & 0xffff));
  if constexpr (std::is_integral_v<T>) {
    return from_bits<T>(c.op == Operator::product ? random | 1 : random);  // even factors soon leave nothing but zeros
  } else if (c.op == Operator::product) {
    constexpr std::array<float, 6> kFactors = {1, -1, 2, -2, 0.5f, -0.5f};
    const float factor = kFactors[random % (is_narrow(c) ? 2 : kFactors.size())];
    const float value = rank % 4 == 0 ? 3 * factor : factor;
    if constexpr (is_complex_v<T>) {
      // Rank 0 alone has two parts: then no part of a product that it is in is 0, of which there are two.
      if (rank == 0) return {value, 2 * value};
      if ((random >> 40) % 2 == 0) return {0, value};
    }
    return static_cast<T>(value);
  } else {
    const float value = static_cast<float>(random % (is_narrow(c) ? 2 : 60) + 1);  // no zero: there are two of them
    const float number = (random >> 32) % 2 == 0 ? value : -value;
    if constexpr (is_complex_v<T>)
      return {number, static_cast<float>((random >> 40) % 60 + 1)};
    else
      return static_cast<T>(number);
  }
}

// ---- Reductions

template <class T>
Wide<T> combined(Operator op, Wide<T> left, Wide<T> right) {
  using W = Wide<T>;
  if (op == Operator::user) return number<W>(add(whole<W>(left), whole<W>(right)));
  if (op == Operator::ordered) return number<W>(compose(whole<W>(left), whole<W>(right)));
  if constexpr (!is_complex_v<T>) {
    if (op == Operator::min) return std::min(left, right);
    if (op == Operator::max) return std::max(left, right);
  }
  if constexpr (std::is_same_v<T, bool>) {
    if (op == Operator::bxor) return left != right;
    return op == Operator::band ? left && right : left || right;
  } else if constexpr (is_complex_v<T>) {
    return op == Operator::product ? product_of(left, right) : left + right;
  } else if constexpr (std::is_integral_v<T>) {
    const auto x = static_cast<std::uint64_t>(left), y = static_cast<std::uint64_t>(right);
    if (op == Operator::product) return static_cast<T>(x * y);
    if (op == Operator::band) return static_cast<T>(x & y);
    if (op == Operator::bor) return static_cast<T>(x | y);
    if (op == Operator::bxor) return static_cast<T>(x ^ y);
    return static_cast<T>(x + y);
  } else {
    return op == Operator::product ? left * right : left + right;
  }
}

template <class T>
Wide<T> scaled(const Case& c, int rank, T value) {
  if (c.op != Operator::premul_sum) return static_cast<Wide<T>>(value);
  const double scale = scale_of(c.dtype, rank);
  if constexpr (is_complex_v<T>)
    return value * static_cast<typename RealOf<T>::Type>(scale);
  else if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<std::uint64_t>(value) *
                          static_cast<std::uint64_t>(static_cast<std::int64_t>(scale)));
  else
    return static_cast<Wide<T>>(value) * static_cast<Wide<T>>(scale);
}

// Over the ranks [0, ranks) of a group of `size`.
template <class T>
T reduced(const Case& c, int ranks, int size, std::uint64_t index) {
  if (ranks == 0) return T{};
  auto total = scaled<T>(c, 0, element<T>(c, 0, index));
  for (int r = 1; r < ranks; ++r) total = combined<T>(c.op, total, scaled<T>(c, r, element<T>(c, r, index)));
  if (c.op == Operator::avg) {
    if constexpr (is_complex_v<T>) {
      total /= static_cast<typename RealOf<T>::Type>(size);
    } else {
      using Signed = std::conditional_t<std::is_signed_v<Wide<T>>, std::int64_t, std::uint64_t>;
      using Quotient = std::conditional_t<std::is_integral_v<T>, Signed, Wide<T>>;
      total = static_cast<Wide<T>>(static_cast<Quotient>(total) / static_cast<Quotient>(size));
    }
  }
  return static_cast<T>(total);
}

// ---- Blocks

template <class Value>
Bytes block(DType dtype, int number, std::size_t count, Value value) {
  return with_element(dtype, [&](auto element) {
    using T = decltype(element);
    Bytes bytes(count * sizeof(T));
    for (std::size_t i = 0; i < count; ++i) {
      const T v = value(T{}, (static_cast<std::uint64_t>(number) << 32) + i);
      std::memcpy(bytes.data() + i * sizeof(T), &v, sizeof(T));
    }
    return bytes;
  });
}

// Block `number` of what `rank` gives.
Bytes given(const Case& c, int rank, int number, std::size_t count) {
  return block(c.dtype, number, count,
               [&](auto element_, std::uint64_t i) { return element<decltype(element_)>(c, rank, i); });
}

Bytes result(const Case& c, int ranks, int size, int number, std::size_t count) {
  return block(c.dtype, number, count,
               [&](auto element_, std::uint64_t i) { return reduced<decltype(element_)>(c, ranks, size, i); });
}

void append(Bytes& bytes, const Bytes& more) {
  bytes.insert(bytes.end(), more.begin(), more.end());
}

std::size_t elements_before(const std::vector<std::size_t>& counts, int rank) {
  return std::accumulate(counts.begin(), counts.begin() + rank, std::size_t{0});
}

// ---- Parts

void reduction(Part& part, const Case& c, int rank, int size) {
  int ranks = size;
  if (c.primitive == Primitive::scan) ranks = rank + 1;
  if (c.primitive == Primitive::exscan) ranks = rank;
  part.input = given(c, rank, 0, c.count);
  part.output = result(c, ranks, size, 0, c.count);
  part.writes = ranks > 0 && (c.primitive != Primitive::reduce || rank == c.root);
}

void reduce_scatter(Part& part, const Case& c, int rank, int size) {
  for (int to = 0; to < size; ++to) {
    part.in_counts.push_back(block_count(c, to, to));
    append(part.input, given(c, rank, to, part.in_counts.back()));
  }
  part.output = result(c, size, size, rank, block_count(c, rank, rank));
  part.own_offset = elements_before(part.in_counts, rank) * size_of(c.dtype);
}

void gathering(Part& part, const Case& c, int rank, int size) {
  for (int from = 0; from < size; ++from) {
    part.out_counts.push_back(block_count(c, from, from));
    append(part.output, given(c, from, 0, part.out_counts.back()));
  }
  part.input = given(c, rank, 0, block_count(c, rank, rank));
  part.own_offset = elements_before(part.out_counts, rank) * size_of(c.dtype);
  part.writes = !is_rooted(c.primitive) || rank == c.root;
  if (!part.writes) part.out_counts.clear();
}

void scattering(Part& part, const Case& c, int rank, int size) {
  for (int to = 0; to < size; ++to) {
    part.in_counts.push_back(block_count(c, to, to));
    append(part.input, given(c, c.root, to, part.in_counts.back()));
  }
  part.output = given(c, c.root, rank, block_count(c, rank, rank));
  part.own_offset = elements_before(part.in_counts, rank) * size_of(c.dtype);
  part.reads = rank == c.root;
  if (!part.reads) part.in_counts.clear();
}

void exchange(Part& part, const Case& c, int rank, int size) {
  for (int other = 0; other < size; ++other) {
    part.in_counts.push_back(block_count(c, rank, other));
    part.out_counts.push_back(block_count(c, other, rank));
    append(part.input, given(c, rank, other, part.in_counts.back()));
    append(part.output, given(c, other, rank, part.out_counts.back()));
  }
}

}  // namespace

namespace {

void message(Part& part, const Case& c, int rank, int size) {
  if (c.primitive == Primitive::batch) return exchange(part, c, rank, size);
  if (c.primitive == Primitive::recv_any) return gathering(part, c, rank, size);
  part.input = given(c, rank, 0, c.count);
  part.output = given(c, source_of(c, rank, size), 0, c.count);
}

// Written by hand on purpose: it must not follow the library's table where that is wrong.
void collective(Part& part, const Case& c, int rank, int size) {
  switch (*collective_of(c.primitive)) {
    case Collective::allreduce:
    case Collective::reduce:
    case Collective::scan:
    case Collective::exscan:
      return reduction(part, c, rank, size);
    case Collective::reduce_scatter:
    case Collective::reduce_scatterv:
      return reduce_scatter(part, c, rank, size);
    case Collective::broadcast:
      part.output = given(c, c.root, 0, c.count);
      part.reads = false;
      return;
    case Collective::allgather:
    case Collective::allgatherv:
    case Collective::gather:
    case Collective::gatherv:
      return gathering(part, c, rank, size);
    case Collective::scatter:
    case Collective::scatterv:
      return scattering(part, c, rank, size);
    case Collective::alltoall:
    case Collective::alltoallv:
      return exchange(part, c, rank, size);
    case Collective::barrier:
    case Collective::send:
    case Collective::recv:
      return;
  }
}

}  // namespace

Part part_of(const Case& c, int rank, int size) {
  Part part;
  collective_of(c.primitive) ? collective(part, c, rank, size) : message(part, c, rank, size);
  return part;
}

Op op_of(const Case& c, int rank) {
  if (c.op == Operator::premul_sum) return Op::premul_sum(scale_of(c.dtype, rank));
  if (c.op == Operator::user) return Op::user(&user_function<add>, true, "addition");
  if (c.op == Operator::ordered) return Op::user(&user_function<compose>, false, "composition");
  return static_cast<ReduceOp>(c.op);
}

}  // namespace col::colcheck
