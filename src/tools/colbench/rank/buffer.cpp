#include "colbench/rank/buffer.hpp"

#include <sys/mman.h>

#include <cstring>
#include <new>
#include <utility>

#if defined(__x86_64__)
#include <emmintrin.h>
#else
#include <vector>
#endif

namespace col::colbench {

PageBuffer::PageBuffer(std::size_t bytes) : size_(bytes) {
  if (bytes == 0) return;
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  data_ = static_cast<std::byte*>(memory);
  std::memset(data_, 0, bytes);
}

PageBuffer::~PageBuffer() {
  if (data_ != nullptr) ::munmap(data_, size_);
}

PageBuffer::PageBuffer(PageBuffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

PageBuffer& PageBuffer::operator=(PageBuffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

#if defined(__x86_64__)
void flush_from_cache(const void* data, std::size_t bytes) {
  constexpr std::size_t kLine = 64;
  const auto* byte = static_cast<const char*>(data);
  for (std::size_t at = 0; at < bytes; at += kLine) _mm_clflush(byte + at);
  _mm_mfence();
}
#else
void flush_from_cache(const void*, std::size_t) {
  constexpr std::size_t kMoreThanCaches = std::size_t{128} << 20;
  static std::vector<char> sweep(kMoreThanCaches);
  std::memset(sweep.data(), static_cast<char>(sweep[0] + 1), sweep.size());
}
#endif

}  // namespace col::colbench
