#include "reference.hpp"

#include <algorithm>
#include <complex>
#include <cstring>
#include <numeric>

#include "random.hpp"

namespace programs {
namespace {

template <class T>
void put(std::byte* to, std::int64_t value) {
  T element;
  if constexpr (std::is_integral_v<T> || std::is_floating_point_v<T>)
    element = static_cast<T>(value);
  else if constexpr (std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>)
    element = static_cast<typename T::value_type>(value);
  else
    element = T(static_cast<float>(value));
  std::memcpy(to, &element, sizeof element);
}

void put(std::byte* to, col::DType dtype, std::int64_t value) {
  switch (dtype) {
    case col::DType::int8:
      return put<std::int8_t>(to, value);
    case col::DType::uint8:
      return put<std::uint8_t>(to, value);
    case col::DType::int16:
      return put<std::int16_t>(to, value);
    case col::DType::uint16:
      return put<std::uint16_t>(to, value);
    case col::DType::int32:
      return put<std::int32_t>(to, value);
    case col::DType::uint32:
      return put<std::uint32_t>(to, value);
    case col::DType::int64:
      return put<std::int64_t>(to, value);
    case col::DType::uint64:
      return put<std::uint64_t>(to, value);
    case col::DType::float16:
      return put<col::float16>(to, value);
    case col::DType::bfloat16:
      return put<col::bfloat16>(to, value);
    case col::DType::float32:
      return put<float>(to, value);
    case col::DType::complex64:
      return put<std::complex<float>>(to, value);
    case col::DType::complex128:
      return put<std::complex<double>>(to, value);
    default:
      return put<double>(to, value);
  }
}

std::size_t sum_before(const std::vector<std::size_t>& counts, std::size_t end) {
  return std::accumulate(counts.begin(), counts.begin() + static_cast<std::ptrdiff_t>(end), std::size_t{0});
}

// Of alltoallv: where in the input of `from` the block for `to` begins.
std::size_t block_of(const Event& event, std::size_t from, std::size_t to) {
  const auto ranks = static_cast<std::size_t>(event.size);
  return sum_before(event.counts, from * ranks + to) - sum_before(event.counts, from * ranks);
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

std::int64_t element_of(const Event& event, const Segment& segment, std::size_t index) {
  const auto of_rank = [&](int rank) {
    const std::int64_t value = value_of(event, rank, segment.offset + index);
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

std::size_t input_count(const Event& event, int rank) {
  const auto ranks = static_cast<std::size_t>(event.size), own = static_cast<std::size_t>(rank);
  switch (event.kind) {
    case Kind::allgatherv:
    case Kind::gatherv:
      return event.counts[own];
    case Kind::reduce_scatterv:
      return sum_before(event.counts, ranks);
    case Kind::scatterv:
      return rank == event.root ? sum_before(event.counts, ranks) : 0;
    case Kind::scatter:
      return rank == event.root ? ranks * event.count : 0;
    case Kind::alltoallv:
      return sum_before(event.counts, (own + 1) * ranks) - sum_before(event.counts, own * ranks);
    case Kind::reduce_scatter:
    case Kind::alltoall:
      return ranks * event.count;
    default:
      return event.count;
  }
}

std::size_t output_count(const Event& event, int rank) {
  std::size_t count = 0;
  for (const Segment& segment : output_of(event, rank)) count += segment.count;
  return count;
}

std::vector<Segment> output_of(const Event& event, int rank) {
  const int all = event.size;
  const std::size_t count = event.count, own = static_cast<std::size_t>(rank);
  const bool is_root = rank == event.root;
  std::vector<Segment> segments;
  const auto for_each_rank = [&](auto&& segment_of) {
    for (int from = 0; from < all; ++from) segments.push_back(segment_of(from, static_cast<std::size_t>(from)));
  };
  switch (event.kind) {
    case Kind::allreduce:
      return {{0, all, 0, count}};
    case Kind::reduce:
      if (is_root) segments = {{0, all, 0, count}};
      break;
    case Kind::broadcast:
      return {{event.root, event.root + 1, 0, count}};
    case Kind::gather:
      if (!is_root) break;
      [[fallthrough]];
    case Kind::allgather:
      for_each_rank([&](int from, std::size_t) { return Segment{from, from + 1, 0, count}; });
      break;
    case Kind::gatherv:
      if (!is_root) break;
      [[fallthrough]];
    case Kind::allgatherv:
      for_each_rank([&](int from, std::size_t at) { return Segment{from, from + 1, 0, event.counts[at]}; });
      break;
    case Kind::reduce_scatter:
      return {{0, all, own * count, count}};
    case Kind::reduce_scatterv:
      return {{0, all, sum_before(event.counts, own), event.counts[own]}};
    case Kind::scatter:
      return {{event.root, event.root + 1, own * count, count}};
    case Kind::scatterv:
      return {{event.root, event.root + 1, sum_before(event.counts, own), event.counts[own]}};
    case Kind::alltoall:
      for_each_rank([&](int from, std::size_t) { return Segment{from, from + 1, own * count, count}; });
      break;
    case Kind::alltoallv:
      for_each_rank([&](int from, std::size_t at) {
        return Segment{from, from + 1, block_of(event, at, own),
                       event.counts[at * static_cast<std::size_t>(all) + own]};
      });
      break;
    case Kind::scan:
      return {{0, rank + 1, 0, count}};
    case Kind::exscan:
      if (rank > 0) segments = {{0, rank, 0, count}};
      break;
    default:
      break;
  }
  return segments;
}

std::int64_t value_of(const Event& event, int rank, std::size_t index) {
  const std::uint64_t begin = mixed(event.seed, static_cast<std::uint64_t>(rank));
  const auto number = static_cast<std::int64_t>(((begin + index * 0x9e3779b97f4a7c15) >> 40) & 0xffff);
  if (!event.has_operator()) return number % 120;
  const bool is_float = event.dtype >= col::DType::float16;
  const bool is_half = event.dtype == col::DType::float16 || event.dtype == col::DType::bfloat16;
  switch (event.op) {
    case Operator::product:
      return is_float ? 1 + number % 2 : number % 4;
    case Operator::avg:
      return event.size * (number % 2);
    case Operator::first_nonzero:
      return number % 3 == 0 ? number : 0;
    default:
      return number % (is_half ? 8 : 100);
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
  Bytes bytes(output_count(event, rank) * size);
  std::byte* next = bytes.data();
  for (const Segment& segment : output_of(event, rank)) {
    for (std::size_t i = 0; i < segment.count; ++i, next += size) put(next, event.dtype, element_of(event, segment, i));
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
