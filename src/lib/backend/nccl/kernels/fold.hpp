// What one thread of a kernel does. Partial results stay in registers. Narrow floats are accumulated in float32, and
// rounded when a result is stored.
//
// nvcc compiles it for the GPU, and the tests compile it as ordinary C++. It depends only on the number of the thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "backend/nccl/kernels/arguments.hpp"
#include "backend/nccl/kernels/arithmetic.hpp"

namespace col::nccl_backend {

// What a thread loads and stores at once, by one instruction.
template <class Element, unsigned kCount>
struct Pack {
  using Storage = typename Element::Storage;
  static constexpr std::size_t kBytes = kCount * sizeof(Storage);

  COL_HOST_DEVICE static Pack load(const std::byte* from) {
    Pack pack;
    memcpy(pack.values, __builtin_assume_aligned(from, kBytes), kBytes);
    return pack;
  }
  COL_HOST_DEVICE void store(std::byte* to) const { memcpy(__builtin_assume_aligned(to, kBytes), values, kBytes); }

  alignas(kBytes) Storage values[kCount];
};

template <class Operator, class Element>
class Fold {
 public:
  static constexpr std::size_t kElementBytes = sizeof(typename Element::Storage);

  // Does the part of thread number `thread` of `threads`.
  COL_HOST_DEVICE static void run(const FoldArguments& a, std::size_t thread, std::size_t threads) {
    std::size_t begin = 0;
    if (is_aligned(a)) {
      const std::size_t packs = a.count / kPerPack;
      for (std::size_t i = thread; i < packs; i += threads) fold<kPerPack>(a, i * kPerPack);
      begin = packs * kPerPack;
    }
    for (std::size_t i = begin + thread; i < a.count; i += threads) fold<1>(a, i);
  }

 private:
  using Compute = typename Element::Compute;
  static constexpr std::size_t kPackBytes = 16;  // the widest load that exists
  static constexpr unsigned kPerPack = kPackBytes / kElementBytes;
  static constexpr bool kIsSum = std::is_same_v<Operator, Sum>;

  COL_HOST_DEVICE static bool is_aligned(const FoldArguments& a) {
    const auto addresses = reinterpret_cast<std::uintptr_t>(a.in) | reinterpret_cast<std::uintptr_t>(a.out);
    return (addresses | a.in_stride | a.out_stride) % kPackBytes == 0;
  }

  // Elements [index, index + kCount) of all blocks.
  template <unsigned kCount>
  COL_HOST_DEVICE static void fold(const FoldArguments& a, std::size_t index) {
    const std::byte* from = a.in + index * kElementBytes;
    std::byte* to = a.out + index * kElementBytes;
    Compute values[kCount], next[kCount];
    load(a, 0, from, values);
    if (a.results == Results::inclusive) store(a, values, to);
      // Many threads hide the latency of loads. Unrolled, this would be several times the code.
#ifdef __CUDACC__
#pragma unroll 1
#endif
    for (std::uint32_t block = 1; block < a.blocks; ++block) {
      from += a.in_stride;
      to += a.out_stride;
      load(a, block, from, next);
      if (a.results == Results::exclusive) store(a, values, to);  // may overwrite the place of `next`
      for (unsigned i = 0; i < kCount; ++i) values[i] = Operator::apply(values[i], next[i]);
      if (a.results == Results::inclusive) store(a, values, to);
    }
    if (a.results == Results::whole) store(a, values, a.out + index * kElementBytes);
  }

  template <unsigned kCount>
  COL_HOST_DEVICE static void load(const FoldArguments& a, std::uint32_t block, const std::byte* from,
                                   Compute (&values)[kCount]) {
    const auto pack = Pack<Element, kCount>::load(from);
    for (unsigned i = 0; i < kCount; ++i) values[i] = Element::widen(pack.values[i]);
    if constexpr (kIsSum) {
      if (a.factors == nullptr) return;
      const auto factor = factor_of<Compute>(a.factors[block]);
      for (unsigned i = 0; i < kCount; ++i) values[i] = Product::apply(values[i], factor);
    }
  }

  template <unsigned kCount>
  COL_HOST_DEVICE static void store(const FoldArguments& a, const Compute (&values)[kCount], std::byte* to) {
    Pack<Element, kCount> pack;
    for (unsigned i = 0; i < kCount; ++i) {
      Compute value = values[i];
      if constexpr (kIsSum) {
        if (a.divisor != 0) value = divided(value, a.divisor);
      }
      pack.values[i] = Element::narrow(value);
    }
    pack.store(to);
  }
};

}  // namespace col::nccl_backend
