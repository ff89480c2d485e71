#include "program.hpp"

#include <algorithm>
#include <cstring>

#include "colcheck/engine/element.hpp"
#include "random.hpp"

namespace programs {
namespace {

using col::tools::Segment;

void put(std::byte* to, col::DType dtype, std::int64_t value) {
  col::colcheck::with_element(dtype, [&]<class T>(T) {
    const auto element = col::colcheck::element_of<T>(static_cast<float>(value));
    std::memcpy(to, &element, sizeof element);
  });
}

std::int64_t combined(const Event& event, std::int64_t left, std::int64_t right) {
  switch (event.op) {
    case Operator::product:
      return left * right;
    case Operator::min:
      return std::min(left, right);
    case Operator::max:
      return std::max(left, right);
    case Operator::band:
      return left & right;
    case Operator::bor:
      return left | right;
    case Operator::bxor:
      return left ^ right;
    case Operator::first_nonzero:
      return left != 0 ? left : right;
    case Operator::sum:
    case Operator::avg:
    case Operator::premul_sum:
      break;
  }
  return left + right;
}

// Where block `block` begins in what a rank brings.
std::size_t begin_of(const Event& event, int rank, int block) {
  return event.kind == Kind::broadcast ? 0 : col::tools::begin_of(input_blocks(call_of(event), rank), block);
}

std::int64_t element_of(const Event& event, const Segment& segment, std::size_t index) {
  const auto of_rank = [&](int rank) {
    const std::int64_t value = value_of(event, rank, index);
    return event.has_operator() && event.op == Operator::premul_sum ? premul_scale(rank) * value : value;
  };
  std::int64_t value = of_rank(segment.first);
  for (int rank = segment.first + 1; rank < segment.last; ++rank) value = combined(event, value, of_rank(rank));
  return event.has_operator() && event.op == Operator::avg ? value / event.size : value;
}

}  // namespace

int premul_scale(int rank) {
  return 1 + rank % 3;
}

col::tools::ReferenceCall call_of(const Event& event) {
  return {.collective = collective_of(event.kind),
          .size = event.size,
          .root = event.root,
          .count = event.count,
          .counts = event.counts};
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
  for (std::size_t i = 0; i < count; ++i) put(bytes.data() + i * size, event.dtype, value_of(event, rank, i));
  return bytes;
}

Bytes expected_output(const Event& event, int rank) {
  const std::size_t size = col::size_of(event.dtype);
  const std::vector<Segment> segments = output_segments(call_of(event), rank);
  Bytes bytes(elements_of(segments) * size);
  std::byte* next = bytes.data();
  for (const Segment& segment : segments) {
    const std::size_t begin = begin_of(event, segment.first, segment.block);
    for (std::size_t i = 0; i < segment.count; ++i, next += size)
      put(next, event.dtype, element_of(event, segment, begin + i));
  }
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
