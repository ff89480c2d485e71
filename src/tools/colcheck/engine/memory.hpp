// Memory for a call to work on, and its expected content afterwards.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <col/types.hpp>

namespace col::tools {
class GpuBuffer;
}

namespace col::colcheck {

using Bytes = std::vector<std::byte>;

// Where a buffer is, and what is beside it. A GPU has no pages that could be guarded. There, a page with a pattern is
// beside a guarded buffer: it shows writes, but not reads.
enum class Placement : std::uint8_t {
  margins,       // aligned to 64 bytes, with a pattern on both sides that must not change
  guard_after,   // its last byte is the last of a page, and the next page must not be touched, not even read
  guard_before,  // its first byte is the first of a page, and the page before must not be touched
  odd_element,   // margins, one element off a boundary of 64 bytes
  odd_byte,      // margins, one byte off
};
inline constexpr int kPlacementCount = 5;

std::string_view to_string(Placement placement);

// A buffer and its expected content. The memory stays in place until the next assign().
class Memory {
 public:
  Memory();
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  // Makes the buffer with this content. The expected content is the same, until expect() changes it. Throws
  // std::bad_alloc, std::system_error; for memory of the GPU that is current in this thread, col::Error.
  void assign(const Bytes& content, Placement placement, std::size_t element_size,
              Device::Type device = Device::Type::cpu);
  // From `offset` on, these bytes are expected.
  void expect(std::size_t offset, const Bytes& content);
  // `count` elements from byte `offset` on.
  TensorView view(std::size_t offset, std::size_t count, DType dtype) const;
  std::size_t size() const noexcept { return size_; }
  // Reads the buffer, or changes it, for every kind of memory. Requires: within the buffer.
  Bytes read(std::size_t offset, std::size_t bytes) const;
  void write(std::size_t offset, const Bytes& content);
  // The first thing that is wrong: "byte 12 of 40 (element 3) is 0x0, not 0x7", "…the page after it was touched". Empty
  // if nothing is.
  std::string problem(std::size_t element_size) const;

 private:
  class Pages;
  void assign_on_gpu(const Bytes& content, Placement placement, std::size_t element_size);
  std::string problem_on_gpu(std::size_t element_size) const;
  std::string wrong_byte(const Bytes& got, std::size_t element_size) const;

  std::byte* data_ = nullptr;  // of the buffer; must not be dereferenced on a GPU
  std::size_t size_ = 0;
  Bytes held_;                             // the buffer and its margins
  std::unique_ptr<Pages> pages_;           // or this, for the guarded ones
  std::unique_ptr<tools::GpuBuffer> gpu_;  // or this
  Bytes expected_;                         // all of that
  std::size_t start_ = 0;                  // where in it the buffer begins
};

}  // namespace col::colcheck
