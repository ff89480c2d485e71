// Memory of whole pages that have been touched, so that no page fault happens in a timed window.
#pragma once

#include <cstddef>

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

}  // namespace col::colbench
