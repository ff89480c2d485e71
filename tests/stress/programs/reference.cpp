#include "program.hpp"

#include <algorithm>
#include <cstring>

#include "common/arithmetic.hpp"
#include "random.hpp"

namespace programs {

col::Op op_of(const Event& event, int rank) {
  if (event.op == Operator::premul_sum) return col::Op::premul_sum(1 + rank % 3);
  if (event.op != Operator::first_nonzero) return static_cast<col::ReduceOp>(event.op);
  const auto first_nonzero = [](const void* left, const void* right, void* result, std::size_t count, col::DType) {
    const auto* const a = static_cast<const std::int32_t*>(left);
    const auto* const b = static_cast<const std::int32_t*>(right);
    for (std::size_t i = 0; i < count; ++i) static_cast<std::int32_t*>(result)[i] = a[i] != 0 ? a[i] : b[i];
  };
  return col::Op::user(first_nonzero, /*commutative=*/false, "first_nonzero");
}

col::tools::ReferenceCall call_of(const Event& event) {
  col::tools::ReferenceCall call{.collective = collective_of(event.kind),
                                 .size = event.size,
                                 .root = event.root,
                                 .count = event.count,
                                 .counts = event.counts,
                                 .ops = {}};
  for (int rank = 0; rank < event.size && event.has_operator(); ++rank) call.ops.push_back(op_of(event, rank));
  return call;
}

std::int64_t value_of(const Event& event, int rank, std::size_t index) {
  const std::uint64_t begin = mixed(event.seed, static_cast<std::uint64_t>(rank));
  const auto number = static_cast<std::int64_t>(((begin + index * 0x9e3779b97f4a7c15) >> 40) & 0xffff);
  if (!event.has_operator()) return number % 120;
  const bool is_float = event.dtype >= col::DType::float16;
  const bool is_narrow = row_of(event.dtype).is_narrow();
  switch (event.op) {
    case Operator::product:
      return is_float ? 1 + number % 2 : number % 4;
    case Operator::avg:
      return event.size * (number % 2);
    case Operator::first_nonzero:
      return number % 3 == 0 ? number : 0;
    default:
      return number % (is_narrow ? 8 : 100);
  }
}

Bytes input_of(const Event& event, int rank, std::size_t count) {
  const std::size_t size = col::size_of(event.dtype);
  Bytes bytes(count * size);
  col::tools::with_element(event.dtype, [&]<class T>(T element) {
    for (std::size_t i = 0; i < count; ++i) {
      element = col::tools::element_of<T>(static_cast<float>(value_of(event, rank, i)));
      std::memcpy(bytes.data() + i * size, &element, size);
    }
  });
  return bytes;
}

Bytes expected_output(const Event& event, int rank) {
  const col::tools::ReferenceCall call = call_of(event);
  const auto segments = output_segments(call, rank);
  Bytes bytes(elements_of(segments) * col::size_of(event.dtype));
  std::byte* next = bytes.data();
  col::tools::with_element(event.dtype, [&]<class T>(T) {
    const auto value = [&](int from, std::size_t i) {
      return col::tools::element_of<T>(static_cast<float>(value_of(event, from, i)));
    };
    col::tools::each_element<T>(call, segments, value, [&](T element) {
      std::memcpy(next, &element, sizeof element);
      next += sizeof element;
    });
  });
  return bytes;
}

std::string difference(const Event& event, const std::byte* found, const Bytes& expected) {
  if (expected.empty() || std::memcmp(found, expected.data(), expected.size()) == 0) return {};
  const auto first = std::mismatch(expected.begin(), expected.end(), found).first - expected.begin();
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) wrong += found[i] != expected[i] ? 1 : 0;
  const std::size_t element = static_cast<std::size_t>(first) / col::size_of(event.dtype);
  return "element " + std::to_string(element) + " of " + std::to_string(expected.size() / col::size_of(event.dtype)) +
         " is the first that is wrong; " + std::to_string(wrong) + " of " + std::to_string(expected.size()) +
         " bytes are";
}

}  // namespace programs
