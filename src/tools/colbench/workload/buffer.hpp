// Memory of whole pages that have been touched, so that no page fault happens in a timed window.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>

#include <col/types.hpp>

#include "common/gpu.hpp"

namespace col::colbench {

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
