// Buffers compared by a GPU, against a loop on the host.
#include <bit>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <random>
#include <vector>

#include <fmt/format.h>

#include <col/channel.hpp>
#include <col/device.hpp>

#include "conformance/gpu/gpu_ranks.hpp"
#include "support/catch.hpp"

namespace col::test {
namespace {

using namespace std::chrono_literals;

using Bytes = std::vector<std::byte>;

// Keeps the first one started, which the memory of arrays ends with.
DeviceMemory& gpus() {
  DeviceMemory& all = col::find_backend("nccl")->device_memory();
  (void)all.cache_bytes(0);
  return all;
}

Difference reference(const std::byte* left, const std::byte* right, std::size_t count, std::size_t size) {
  Difference difference;
  for (std::size_t i = 0; i < count; ++i) {
    if (std::memcmp(left + i * size, right + i * size, size) == 0) continue;
    if (difference.count++ == 0) difference.first = i;
  }
  return difference;
}

Difference found(const void* left, const void* right, std::size_t count, std::size_t size) {
  const auto comparison = gpus().compare(left, right, count, size, 0, {});
  REQUIRE(comparison != nullptr);
  std::optional<Difference> difference;
  const Deadline deadline = Deadline::after(60s);
  while (!(difference = comparison->result())) REQUIRE(!deadline.expired());
  return *difference;
}

// `count` elements that begin so many bytes behind an aligned address; those at `places` differ in one bit.
void check(std::size_t count, std::size_t size, std::size_t left_at, std::size_t right_at,
           const std::vector<std::size_t>& places) {
  INFO(fmt::format("{} elements of {} bytes, {} and {} bytes off", count, size, left_at, right_at));
  (void)gpus();
  std::mt19937 random(static_cast<unsigned>(count * 8 + size));
  Bytes left(left_at + count * size + 1), right(right_at + count * size + 1);
  for (std::size_t i = 0; i < count * size; ++i) left[left_at + i] = right[right_at + i] = std::byte(random());
  for (const std::size_t place : places)
    right[right_at + place * size + random() % size] ^= std::byte(1U << random() % 8);
  left.back() = std::byte(1);  // beyond the end, nobody looks
  const GpuArray<std::uint8_t> on_gpu(0, {reinterpret_cast<const std::uint8_t*>(left.data()),
                                          reinterpret_cast<const std::uint8_t*>(left.data() + left.size())});
  const GpuArray<std::uint8_t> other(0, {reinterpret_cast<const std::uint8_t*>(right.data()),
                                         reinterpret_cast<const std::uint8_t*>(right.data() + right.size())});
  const auto address = [](const GpuArray<std::uint8_t>& array, std::size_t offset) {
    return static_cast<const std::byte*>(ConstTensorView(array).data) + offset;
  };
  const Difference wanted = reference(left.data() + left_at, right.data() + right_at, count, size);
  const Difference got = found(address(on_gpu, left_at), address(other, right_at), count, size);
  CHECK(wanted.count == places.size());
  CHECK(got.count == wanted.count);
  CHECK(got.first == wanted.first);
}

template <class T>
Difference of_two(T left, T right) {
  (void)gpus();
  const GpuArray<T> one(0, std::vector<T>{left}), other(0, std::vector<T>{right});
  return found(ConstTensorView(one).data, ConstTensorView(other).data, 1, sizeof(T));
}

GPU_TEST_CASE("gpu: a comparison counts the elements that differ, and names the first", "[gpu]") {
  for (const std::size_t size : {1, 2, 4, 8}) {
    for (const std::size_t count : {0, 1, 2, 7, 15, 16, 17, 255, 1001}) {
      for (const auto& [left, right] : {std::pair(0, 0), std::pair(0, 1), std::pair(3, 3), std::pair(8, 16)}) {
        check(count, size, left, right, {});
        if (count == 0) continue;
        check(count, size, left, right, {0});
        if (count == 1) continue;
        check(count, size, left, right, {count - 1});
        check(count, size, left, right, {count / 2 - 1, count - 1});
      }
    }
  }
}

GPU_TEST_CASE("gpu: a comparison of many elements finds the first of many differences, and the very last", "[gpu]") {
  constexpr std::size_t kMany = (std::size_t{1} << 20) + 3;
  check(kMany, 1, 0, 0, {});
  check(kMany, 4, 0, 0, {kMany - 1});
  check(kMany, 4, 4, 0, {77, 78, 79, 4096, kMany / 2, kMany - 2, kMany - 1});
  check(kMany, 8, 0, 0, {kMany - 4, kMany - 3});
  std::vector<std::size_t> all(kMany);
  for (std::size_t i = 0; i < kMany; ++i) all[i] = i;
  check(kMany, 2, 0, 0, all);
}

GPU_TEST_CASE("gpu: a comparison is one of bits", "[gpu]") {
  const auto other_nan = std::bit_cast<float>(std::bit_cast<std::uint32_t>(NAN) ^ 1U);
  CHECK(of_two(NAN, NAN).count == 0);
  CHECK(of_two(std::nan(""), std::nan("")).count == 0);
  CHECK(of_two<float>(NAN, other_nan).count == 1);
  CHECK(of_two(0.0, -0.0).count == 1);
  CHECK(of_two(1.0f, std::nextafter(1.0f, 2.0f)).count == 1);
}

GPU_TEST_CASE("gpu: a comparison comes after what its stream holds", "[gpu]") {
  constexpr std::size_t kCount = 100'000;
  const auto timer = gpus().make_timer(0);
  const std::vector<std::int32_t> ones(kCount, 1);
  const GpuArray<std::int32_t> left(0, ones), right(0, kCount);
  const auto address = [](const GpuArray<std::int32_t>& array) { return TensorView(array).data; };
  const auto copy = gpus().copy(address(right), address(left), kCount * 4, 0, timer->stream());
  const auto comparison = gpus().compare(address(left), address(right), kCount, 4, 0, timer->stream());
  REQUIRE(comparison != nullptr);
  std::optional<Difference> difference;
  const Deadline deadline = Deadline::after(60s);
  while (!(difference = comparison->result())) REQUIRE(!deadline.expired());
  CHECK(difference->count == 0);
  while (!copy->done()) REQUIRE(!deadline.expired());
}

}  // namespace
}  // namespace col::test
