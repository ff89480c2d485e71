// Loops over narrow floats together with float32. Included once by each source file of kernels/.
#pragma once

#include <cstddef>
#include <cstring>

#include <col/types.hpp>

#include "core/kernels/element.hpp"
#include "core/kernels/narrow_lanes.hpp"
#include "core/kernels/vectors.hpp"

namespace col::core {
namespace {  // NOLINT(google-build-namespaces)

template <DType kDType>
constexpr std::size_t kStorageBytes = sizeof(typename Element<kDType>::Storage);

// The vector of elements from `index` on. If fewer than a vector remain, only `count` of them are valid.
template <class Isa, DType kDType>
[[gnu::always_inline]] inline Floats<Isa::kVectorBytes> load_some(const std::byte* from, std::size_t index,
                                                                  std::size_t count) {
  constexpr std::size_t kLanes = Isa::kVectorBytes / sizeof(float);
  from += index * kStorageBytes<kDType>;
  if (count >= kLanes) return load_floats<Isa, kDType, Isa::kVectorBytes>(from);
  std::byte some[kLanes * kStorageBytes<kDType>] = {};
  std::memcpy(some, from, count * kStorageBytes<kDType>);
  return load_floats<Isa, kDType, Isa::kVectorBytes>(some);
}

template <class Isa, DType kDType>
[[gnu::always_inline]] inline void store_some(std::byte* to, std::size_t index, std::size_t count,
                                              Floats<Isa::kVectorBytes> value) {
  constexpr std::size_t kLanes = Isa::kVectorBytes / sizeof(float);
  to += index * kStorageBytes<kDType>;
  if (count >= kLanes) return store_floats<Isa, kDType, Isa::kVectorBytes>(to, value);
  std::byte some[kLanes * kStorageBytes<kDType>];
  store_floats<Isa, kDType, Isa::kVectorBytes>(some, value);
  std::memcpy(to, some, count * kStorageBytes<kDType>);
}

template <class Isa, DType kFrom, DType kTo>
void convert_loop(const std::byte* in, std::byte* out, std::size_t count) {
  constexpr std::size_t kLanes = Isa::kVectorBytes / sizeof(float);
  for (std::size_t i = 0; i < count; i += kLanes) {
    store_some<Isa, kTo>(out, i, count - i, load_some<Isa, kFrom>(in, i, count - i));
  }
}

template <class Isa, class Operator, DType kLeft, DType kRight, DType kResult>
void mixed_loop(const std::byte* left, const std::byte* right, std::byte* result, std::size_t count) {
  constexpr std::size_t kLanes = Isa::kVectorBytes / sizeof(float);
  for (std::size_t i = 0; i < count; i += kLanes) {
    const auto l = load_some<Isa, kLeft>(left, i, count - i);
    const auto r = load_some<Isa, kRight>(right, i, count - i);
    store_some<Isa, kResult>(result, i, count - i, combine<Operator, float, Isa::kVectorBytes>(l, r));
  }
}

}  // namespace
}  // namespace col::core
