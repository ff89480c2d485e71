#include "colbench/workload/buffer.hpp"

#include <emmintrin.h>
#include <sys/mman.h>

#include <cstring>
#include <new>
#include <utility>
#include <vector>

#if defined(__x86_64__)
#else
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
  constexpr std::size_t kCacheLine = 64;
  const auto* byte = static_cast<const char*>(data);
  for (std::size_t at = 0; at < bytes; at += kCacheLine) _mm_clflush(byte + at);
  _mm_mfence();
}
#else
void flush_from_cache(const void*, std::size_t) {
  constexpr std::size_t kMoreThanCaches = std::size_t{128} << 20;
  static std::vector<char> sweep(kMoreThanCaches);
  std::memset(sweep.data(), static_cast<char>(sweep[0] + 1), sweep.size());
}
#endif

CellBuffer::CellBuffer(std::size_t bytes, Device::Type device) : image_(bytes) {
  if (device == Device::Type::cpu || bytes == 0) return;
  gpu_ = std::make_unique<tools::GpuBuffer>(bytes, tools::GpuBuffer::Keep::no);
  push_all();
}

void CellBuffer::push(std::size_t offset, std::size_t bytes) const {
  if (gpu_) gpu_->write(offset, {image() + offset, bytes});
}

void CellBuffer::pull(std::size_t offset, std::size_t bytes) const {
  if (gpu_) gpu_->read(offset, {image() + offset, bytes});
}

TensorView CellBuffer::view(std::size_t offset, std::size_t count, DType dtype) const {
  if (gpu_) return {gpu_->data() + offset, count, dtype, gpu_->device()};
  return {image() + offset, count, dtype};
}

std::optional<Difference> CellBuffer::compare(std::size_t offset, const CellBuffer& expected, std::size_t count,
                                              std::size_t element_bytes) const {
  // The kernels compare up to 8 bytes at once; of anything else each byte.
  const bool has_kernel = element_bytes <= 8 && (element_bytes & (element_bytes - 1)) == 0;
  const std::size_t each = has_kernel ? element_bytes : 1;
  auto found = tools::compare_on_gpu(gpu_->data() + offset, expected.gpu_->data(), count * (element_bytes / each), each,
                                     gpu_->device().index);
  if (found && each != element_bytes) *found = {std::min(found->count, count), found->first / element_bytes};
  return found;
}

void CellBuffer::flush() const {
  if (!gpu_) flush_from_cache(image(), size());
}

}  // namespace col::colbench
