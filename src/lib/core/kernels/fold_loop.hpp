// The loop of fold(). Included once by each source file of kernels/.
//
//   inputs[0]  ..|--------|--------|--------|--------|..     a tile: as many packs as registers hold
//   inputs[1]  ..|--------|--------|--------|--------|..     added to it, one input after the other
//   ...
//   target     ..|--------|--------|--------|--------|..     written once, and aligned
//
// The number of inputs is not a template argument: the branch at the end of an input is one per tile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include <col/types.hpp>

#include "core/kernels/element.hpp"
#include "core/kernels/kernel_table.hpp"
#include "core/kernels/packs.hpp"

namespace col::core {
namespace {  // NOLINT(google-build-namespaces)

template <class Isa, class Operator, DType kFrom, DType kDType>
struct FoldLoop {
  using T = typename Element<kDType>::Compute;
  static constexpr bool kDivides = std::is_same_v<Operator, Sum> && std::is_floating_point_v<T>;
  static constexpr std::size_t kInputSize = sizeof(typename Element<kFrom>::Storage);
  static constexpr std::size_t kOutputSize = sizeof(typename Element<kDType>::Storage);

  static void run(const FoldCall& call) {
    // One number: it takes no longer than to get ready for vectors.
    if (call.count == 1) return one_by_one(call);
    many(call);
  }

 private:
  template <class Pack, std::size_t kPacks>
  struct Tile {
    Pack packs[kPacks];
  };

  // Prefetches what the tile after the next few will load. It is used if a tile takes so many instructions that the
  // processor does not look that far ahead by itself. A prefetch past the end has no effect and is no error.
  template <class Pack, std::size_t... kIndex>
  [[gnu::always_inline]] static inline void prefetch(const std::byte* input, std::index_sequence<kIndex...>) {
    constexpr std::size_t kAhead = 2048;
    if constexpr (Pack::kRegisters > 1 && sizeof...(kIndex) > 1)
      (__builtin_prefetch(input + kAhead + kIndex * Pack::kInputBytes), ...);
  }

  // Computes the results for the elements from `index` on, in registers.
  template <class Pack, std::size_t... kIndex>
  [[gnu::always_inline]] static inline Tile<Pack, sizeof...(kIndex)> compute(const FoldCall& call, std::size_t index,
                                                                             std::index_sequence<kIndex...>) {
    const std::size_t offset = (call.input_begin + index) * kInputSize;
    const std::byte* input = call.inputs[0] + offset;
    constexpr auto kPacks = std::index_sequence<kIndex...>{};
    prefetch<Pack>(input, kPacks);
    Tile<Pack, sizeof...(kIndex)> tile{{Pack::load(input + kIndex * Pack::kInputBytes)...}};
    for (std::size_t k = 1; k < call.input_count; ++k) {
      input = call.inputs[k] + offset;
      prefetch<Pack>(input, kPacks);
      (tile.packs[kIndex].template add<Operator>(input + kIndex * Pack::kInputBytes), ...);
    }
    if constexpr (kDivides) {
      if (call.divisor != 0) {
        const T by = static_cast<T>(call.divisor);
        (tile.packs[kIndex].divide(by), ...);
      }
    }
    return tile;
  }

  template <class Pack>
  [[gnu::always_inline]] static inline void store_cached(std::byte* to, const Pack& pack) {
    const typename Pack::Stored value = pack.result();
    std::memcpy(to, &value, sizeof(value));
  }

  template <class Pack, std::size_t kPacks, std::size_t... kIndex>
  [[gnu::always_inline]] static inline void store(std::byte* to, bool streaming, const Tile<Pack, kPacks>& tile,
                                                  std::index_sequence<kIndex...>) {
    constexpr std::size_t kStep = sizeof(typename Pack::Stored);
    if (streaming) {
      (Isa::stream(to + kIndex * kStep, tile.packs[kIndex].result()), ...);
    } else {
      (store_cached(to + kIndex * kStep, tile.packs[kIndex]), ...);
    }
  }

  [[gnu::noinline]] static void many(const FoldCall& call) { with_vectors<Isa::kVectorBytes>(call); }

  template <std::size_t kBytes>
  static void with_vectors(const FoldCall& call) {
    using Pack = PackFor<Isa, kFrom, kDType, kBytes>;
    constexpr std::size_t kCount = Pack::kCount;
    constexpr auto kOne = std::make_index_sequence<1>{};
    if (call.count < kCount) {
      if constexpr (kBytes > 16) {
        with_vectors<kBytes / 2>(call);
      } else {
        one_by_one(call);
      }
      return;
    }
    // The first and the last pack may overlap with what the loop does. They are computed before anything is stored, so
    // they are right even if a target is an input.
    const std::size_t last = call.count - kCount;
    const Pack head = compute<Pack>(call, 0, kOne).packs[0];
    const Pack tail = compute<Pack>(call, last, kOne).packs[0];
    if constexpr (kBytes == Isa::kVectorBytes) {
      if (call.count > 2 * kCount) between<Pack>(call);
    }
    store_cached(call.first.data, head);
    store_cached(call.first.data + last * kOutputSize, tail);
    if (call.second.data != nullptr) {
      store_cached(call.second.data, head);
      store_cached(call.second.data + last * kOutputSize, tail);
    }
  }

  // Whole packs, from the first one that is aligned in the target.
  template <class Pack>
  static void between(const FoldCall& call) {
    constexpr std::size_t kCount = Pack::kCount;
    constexpr std::size_t kTile = Isa::kAccumulators / Pack::kRegisters;
    constexpr auto kOne = std::make_index_sequence<1>{};
    constexpr auto kAll = std::make_index_sequence<kTile>{};
    constexpr std::size_t kAlignment = sizeof(typename Pack::Stored);
    static_assert(kAlignment <= kCount * kOutputSize);  // the head reaches the begin of the loop
    std::byte* const first = call.first.data;
    std::byte* const second = call.second.data;
    const bool second_decides =
        second != nullptr && call.second.stores == Stores::streaming && call.first.stores != Stores::streaming;
    std::size_t i = to_alignment<kAlignment>(second_decides ? second : first);
    const bool stream_first = streams<kAlignment>(call.first, i);
    const bool stream_second = second != nullptr && streams<kAlignment>(call.second, i);
    for (; i + kTile * kCount <= call.count; i += kTile * kCount) {
      const auto tile = compute<Pack>(call, i, kAll);
      store(first + i * kOutputSize, stream_first, tile, kAll);
      if (second != nullptr) store(second + i * kOutputSize, stream_second, tile, kAll);
    }
    for (; i + kCount <= call.count; i += kCount) {
      const auto pack = compute<Pack>(call, i, kOne);
      store(first + i * kOutputSize, stream_first, pack, kOne);
      if (second != nullptr) store(second + i * kOutputSize, stream_second, pack, kOne);
    }
    if (stream_first || stream_second) Isa::fence();
  }

  // How many elements come before the first aligned address in the target; 0 if no element begins at an aligned
  // address.
  template <std::size_t kAlignment>
  static std::size_t to_alignment(const std::byte* target) {
    const std::size_t before = (0 - reinterpret_cast<std::uintptr_t>(target)) % kAlignment;
    return before % kOutputSize == 0 ? before / kOutputSize : 0;
  }

  template <std::size_t kAlignment>
  static bool streams(const FoldTarget& target, std::size_t index) {
    const auto address = reinterpret_cast<std::uintptr_t>(target.data) + index * kOutputSize;
    return target.stores == Stores::streaming && address % kAlignment == 0;
  }

  static void one_by_one(const FoldCall& call) {
    for (std::size_t i = 0; i < call.count; ++i) {
      const std::size_t from = call.input_begin + i;
      T value = core::load<kFrom>(call.inputs[0], from);
      for (std::size_t k = 1; k < call.input_count; ++k)
        value = Operator::apply(value, core::load<kFrom>(call.inputs[k], from));
      if constexpr (kDivides) {
        if (call.divisor != 0) value = value / static_cast<T>(call.divisor);
      }
      core::store<kDType>(call.first.data, i, value);
      if (call.second.data != nullptr) core::store<kDType>(call.second.data, i, value);
    }
  }
};

}  // namespace
}  // namespace col::core
