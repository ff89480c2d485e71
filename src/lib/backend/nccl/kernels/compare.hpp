// What one thread of a comparison does. It compares bits, whatever they mean: a NaN equals a NaN with the same bits.
//
// nvcc compiles it for the GPU, and the tests compile it as ordinary C++. It depends only on the number of the thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/nccl/kernels/arguments.hpp"
#include "backend/nccl/kernels/arithmetic.hpp"

namespace col::nccl_backend {

template <std::size_t kElementBytes>
class Compare {
 public:
  static constexpr std::size_t kBytes = kElementBytes;

  // Does the part of thread number `thread` of `threads`.
  COL_HOST_DEVICE static void run(const CompareArguments& a, std::size_t thread, std::size_t threads) {
    CompareResult found{0, 0};
    std::size_t begin = 0;
    if (is_aligned(a)) {
      const std::size_t packs = a.count / kPerPack;
      for (std::size_t i = thread; i < packs; i += threads) {
        if (!is_equal(a, i * kPackBytes)) look_at(a, i * kPerPack, (i + 1) * kPerPack, found);
      }
      begin = packs * kPerPack;
    }
    for (std::size_t i = begin + thread; i < a.count; i += threads) look_at(a, i, i + 1, found);
    if (found.count > 0) add(found, *a.result);
  }

 private:
  static constexpr std::size_t kPackBytes = 16;  // the widest load that exists
  static constexpr std::size_t kPerPack = kPackBytes / kElementBytes;

  struct alignas(kPackBytes) Words {
    std::uint64_t low, high;
  };

  COL_HOST_DEVICE static bool is_aligned(const CompareArguments& a) {
    return (reinterpret_cast<std::uintptr_t>(a.left) | reinterpret_cast<std::uintptr_t>(a.right)) % kPackBytes == 0;
  }

  COL_HOST_DEVICE static Words load(const std::byte* from) {
    Words words;
    memcpy(&words, __builtin_assume_aligned(from, kPackBytes), kPackBytes);
    return words;
  }

  // Compares one pack, `at` bytes from the begin.
  COL_HOST_DEVICE static bool is_equal(const CompareArguments& a, std::size_t at) {
    const Words left = load(a.left + at), right = load(a.right + at);
    return ((left.low ^ right.low) | (left.high ^ right.high)) == 0;
  }

  // Compares elements [begin, end) byte by byte: they may be at any address, and there are few of them.
  COL_HOST_DEVICE static void look_at(const CompareArguments& a, std::size_t begin, std::size_t end,
                                      CompareResult& found) {
    for (std::size_t i = begin; i < end; ++i) {
      bool differs = false;
      for (std::size_t byte = i * kElementBytes; byte < (i + 1) * kElementBytes; ++byte)
        differs |= a.left[byte] != a.right[byte];
      if (!differs) continue;
      if (found.count++ == 0) found.first_inverted = ~static_cast<unsigned long long>(i);
    }
  }

  // Adds to what the other threads have found.
  COL_HOST_DEVICE static void add(const CompareResult& found, CompareResult& all) {
#ifdef __CUDA_ARCH__
    atomicAdd(&all.count, found.count);
    atomicMax(&all.first_inverted, found.first_inverted);
#else
    all.count += found.count;
    if (all.first_inverted < found.first_inverted) all.first_inverted = found.first_inverted;
#endif
  }
};

}  // namespace col::nccl_backend
