#include <algorithm>
#include <array>
#include <cstring>

#include "colbench/workload/buffer.hpp"
#include "colbench/workload/workload.hpp"

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace col::colbench {
namespace {

// Kernels on less than this are repeated until they are as long.
constexpr std::size_t kLeastTraffic = std::size_t{8} << 20;
constexpr std::size_t kAlignment = 64;

#if defined(__x86_64__)
void copy_around_cache(std::byte* to, const std::byte* from, std::size_t bytes) {
  for (std::size_t at = 0; at + kAlignment <= bytes; at += kAlignment) {
    for (std::size_t part = 0; part < kAlignment; part += sizeof(__m128i)) {
      const __m128i value = _mm_load_si128(reinterpret_cast<const __m128i*>(from + at + part));
      _mm_stream_si128(reinterpret_cast<__m128i*>(to + at + part), value);
    }
  }
  _mm_sfence();
}
#else
void copy_around_cache(std::byte* to, const std::byte* from, std::size_t bytes) {
  std::memcpy(to, from, bytes);
}
#endif

std::uint64_t read_all(const std::byte* from, std::size_t bytes) {
  constexpr std::size_t kLanes = 8;
  std::array<std::uint64_t, kLanes> sums{};
  for (std::size_t at = 0; at + kAlignment <= bytes; at += kAlignment) {
    std::array<std::uint64_t, kLanes> values;
    std::memcpy(values.data(), from + at, kAlignment);
    for (std::size_t lane = 0; lane < kLanes; ++lane) sums[lane] += values[lane];
  }
  std::uint64_t sum = 0;
  for (const std::uint64_t lane : sums) sum += lane;
  return sum;
}

// Cache lines one by one: a length that is known lets compilers use their widest registers.
void add(float* __restrict to, const float* __restrict from, std::size_t count) {
  constexpr std::size_t kLine = kAlignment / sizeof(float);
  for (std::size_t i = 0; i + kLine <= count; i += kLine) {
    for (std::size_t lane = 0; lane < kLine; ++lane) to[i + lane] += from[i + lane];
  }
}

class KernelWorkload : public Workload {
 public:
  KernelWorkload(Kernel kernel, std::size_t bytes)
      : kernel_(kernel),
        half_(std::max(kAlignment, bytes / 2 / kAlignment * kAlignment)),
        first_(half_),
        second_(half_) {
    repeats_ =
        static_cast<int>(std::max<std::size_t>(1, kLeastTraffic / std::max<std::size_t>(1, traffic_of(kernel, bytes))));
  }
  void prepare(std::uint64_t) override {}
  Check check(std::uint64_t, bool) override { return {}; }
  double operations() const override { return repeats_; }

  void run() override {
    for (int i = 0; i < repeats_; ++i) {
      once();
      // What was written counts as used, and must be written again.
      asm volatile("" : : "r"(first_.data()), "r"(second_.data()) : "memory");
    }
  }

 private:
  void once() {
    switch (kernel_) {
      case Kernel::copy:
        std::memcpy(second_.data(), first_.data(), half_);
        return;
      case Kernel::copy_around_cache:
        return copy_around_cache(second_.data(), first_.data(), half_);
      case Kernel::read: {
        const std::uint64_t sum = read_all(first_.data(), half_) + read_all(second_.data(), half_);
        asm volatile("" : : "r"(sum));
        return;
      }
      case Kernel::write:
        std::memset(first_.data(), 0, half_);
        std::memset(second_.data(), 0, half_);
        return;
      case Kernel::reduce:
        return add(reinterpret_cast<float*>(second_.data()), reinterpret_cast<const float*>(first_.data()),
                   half_ / sizeof(float));
    }
  }

  const Kernel kernel_;
  const std::size_t half_;
  PageBuffer first_, second_;
  int repeats_ = 1;
};

}  // namespace

std::size_t traffic_of(Kernel kernel, std::size_t bytes) {
  const std::size_t half = std::max(kAlignment, bytes / 2 / kAlignment * kAlignment);
  return kernel == Kernel::reduce ? 3 * half : 2 * half;
}

std::unique_ptr<Workload> make_kernel_workload(Kernel kernel, std::size_t bytes) {
  return std::make_unique<KernelWorkload>(kernel, bytes);
}

}  // namespace col::colbench
