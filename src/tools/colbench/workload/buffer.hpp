// The values for operations, and the results that they must have.
//
// They are whole numbers so small that every partial sum is exact in every type, so the order of a reduction does not
// show. An element is a function of (seed, rank, block, index, epoch). Results follow from it by common/arithmetic.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include <col/types.hpp>

#include "common/element.hpp"
#include "common/gpu.hpp"

namespace col::colbench {

struct Values {
  std::uint64_t seed = 0;
  DType dtype = DType::float32;
  ReduceOp op = ReduceOp::sum;

  // The value of rank `rank` at element `index` of its block `block`.
  std::int64_t at(int rank, int block, std::size_t index, std::uint64_t epoch) const noexcept {
    std::uint64_t x = seed + 0x9e3779b97f4a7c15U * (index + 1);
    x ^= (static_cast<std::uint64_t>(rank) << 40) + (static_cast<std::uint64_t>(block) << 20) +
         epoch * 0xd1342543de82ef95U;
    x *= 0xff51afd7ed558ccdU;
    x ^= x >> 32;
    x *= 0xc4ceb9fe1a85ec53U;
    const auto small = static_cast<std::int64_t>(x >> 61);  // 0 … 7
    return op == ReduceOp::product ? 1 + (small == 0) : 1 + small;
  }
};

// The elements of `count` that are looked at after an iteration: the first, the last, and some of those in between,
// ascending. The same on all ranks.
std::vector<std::size_t> sampled_elements(std::uint64_t seed, std::uint64_t iteration, std::size_t count);
// As many are looked at where a check may take longer.
inline constexpr std::size_t kSampledWhole = 65'536;

// Writes `value` as an element of `dtype`, rounded as the type requires. Requires of integers: the type has it.
void store_element(void* to, DType dtype, double value);
// The same for `count` elements in a row: value(i).
template <class Value>
void fill_elements(std::byte* to, DType dtype, std::size_t count, Value value) {
  const std::size_t size = size_of(dtype);
  if (is_opaque(dtype)) {
    for (std::size_t i = 0; i < count; ++i) store_element(to + i * size, dtype, static_cast<double>(value(i)));
    return;
  }
  tools::with_element(dtype, [&](auto element) {
    for (std::size_t i = 0; i < count; ++i) {
      element = tools::element_of<decltype(element)>(static_cast<float>(value(i)));
      std::memcpy(to + i * sizeof element, &element, sizeof element);
    }
  });
}
// Gives the part of a small whole number that an element keeps.
inline double kept(std::int64_t value, DType dtype) {
  return dtype == DType::boolean ? value != 0 : static_cast<double>(value);
}
// True if the element at `from` is `expected` (averages and products of narrow floats may be off by rounding).
// `averaged`: as an average over so many ranks, which NCCL divides before it adds, and rounds each time; 0: it was
// moved, and must be exact.
bool is_element(const void* from, DType dtype, double expected, int averaged = 1);
double load_element(const void* from, DType dtype);

// Memory of whole pages that have been touched, so that no page fault happens in a timed window.
class PageBuffer {
 public:
  PageBuffer() = default;
  // Throws std::bad_alloc.
  explicit PageBuffer(std::size_t bytes);
  ~PageBuffer();
  PageBuffer(PageBuffer&& other) noexcept;
  PageBuffer& operator=(PageBuffer&& other) noexcept;

  std::byte* data() const noexcept { return data_; }
  std::size_t size() const noexcept { return size_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

// Writes back and drops every cache line of [data, data + bytes), on processors with an instruction for this. On
// others, it sweeps the caches with other memory.
void flush_from_cache(const void* data, std::size_t bytes);

// A buffer for a cell's operation: in host memory, or in the memory of this rank's GPU.
class CellBuffer {
 public:
  CellBuffer() = default;
  // Zeroed. Throws std::bad_alloc; for a GPU, what tools::GpuBuffer throws.
  CellBuffer(std::size_t bytes, Device::Type device);

  std::size_t size() const noexcept { return image_.size(); }
  // The place to write the wanted content of the buffer, and to read its content: the buffer itself, or for a GPU a
  // copy of it on the host. push() copies a part of this copy to the GPU, and pull() copies it back.
  std::byte* image() const noexcept { return image_.data(); }
  void push(std::size_t offset, std::size_t bytes) const;
  void pull(std::size_t offset, std::size_t bytes) const;
  void push_all() const { push(0, size()); }
  void pull_all() const { pull(0, size()); }
  // `count` elements from byte `offset` on, for a call.
  TensorView view(std::size_t offset, std::size_t count, DType dtype) const;
  // How `count` elements from byte `offset` on differ from the first ones of `expected`, bit by bit; nothing if only
  // the host can find out. Requires: both are in GPU memory.
  std::optional<Difference> compare(std::size_t offset, const CellBuffer& expected, std::size_t count,
                                    std::size_t element_bytes) const;
  // For a sample with cold caches. Does nothing for a GPU.
  void flush() const;

 private:
  PageBuffer image_;
  std::unique_ptr<tools::GpuBuffer> gpu_;  // null on the host
};

}  // namespace col::colbench
