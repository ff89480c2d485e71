#include "colbench/workload/buffer.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

#include "common/element.hpp"

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace col::colbench {
namespace {

using tools::with_element;

// Byte `index` of an opaque element, or of a boolean: the value's bytes again and again.
std::uint8_t byte_of(std::int64_t value, std::size_t index) {
  return static_cast<std::uint8_t>(static_cast<std::uint64_t>(value) >> (8 * (index % sizeof value)));
}

double load_opaque(const void* from, DType dtype) {
  const auto* const bytes = static_cast<const std::uint8_t*>(from);
  std::int64_t value = 0;
  for (std::size_t i = std::min(size_of(dtype), sizeof value); i-- > 0;) value = value * 256 + bytes[i];
  for (std::size_t i = 0; i < size_of(dtype); ++i)
    if (bytes[i] != byte_of(value, i)) return std::nan("");
  return static_cast<double>(value);
}

// The largest number of a floating type; of float64, what is enough for the sums here.
template <class T>
constexpr double kLargest = std::is_same_v<T, float16>         ? 65504
                            : std::is_same_v<T, bfloat16>      ? 0x1.fep127
                            : std::is_same_v<T, float8_e4m3fn> ? 448
                            : std::is_same_v<T, float8_e5m2>   ? 57344
                                                               : std::numeric_limits<float>::max();

// True if `value` is near enough to a result that is no number of the type, or needs more bits than it has.
template <class T>
bool is_near(double value, double expected, int roundings) {
  // A result too large for the type is an infinity, or a NaN; NCCL takes the largest number of 8 bits.
  if (std::abs(expected) > kLargest<T> && !(std::abs(value) < kLargest<T>))
    return std::isnan(value) ? std::is_same_v<T, float8_e4m3fn> : value * expected > 0;
  const double unit = tools::is_narrow_v<T> ? roundings * std::ldexp(1.0, -tools::kPrecision<T>) : 1e-6;
  return std::abs(value - expected) <= unit * std::abs(expected);
}

}  // namespace

std::vector<std::size_t> sampled_elements(std::uint64_t seed, std::uint64_t iteration, std::size_t count) {
  constexpr std::size_t kSampled = 16;
  std::vector<std::size_t> sampled = {0, count - 1};
  std::uint64_t state = seed ^ (iteration * 0x9e3779b97f4a7c15U);
  for (std::size_t i = 2; i < std::min(kSampled, count); ++i) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    sampled.push_back((state >> 33) % count);
  }
  std::sort(sampled.begin(), sampled.end());
  sampled.erase(std::unique(sampled.begin(), sampled.end()), sampled.end());
  return sampled;
}

void store_element(void* to, DType dtype, double value) {
  if (is_opaque(dtype)) {
    const auto whole = static_cast<std::int64_t>(value);
    for (std::size_t i = 0; i < size_of(dtype); ++i) static_cast<std::uint8_t*>(to)[i] = byte_of(whole, i);
    return;
  }
  with_element(dtype, [&](auto element) {
    using T = decltype(element);
    if constexpr (std::is_integral_v<T> || std::is_same_v<T, double>)
      element = static_cast<T>(value);
    else
      element = tools::element_of<T>(static_cast<float>(value));
    std::memcpy(to, &element, sizeof element);
  });
}

// A complex number's real part; no number if the other part is not 0.
double load_element(const void* from, DType dtype) {
  if (is_opaque(dtype)) return load_opaque(from, dtype);
  // A boolean is read as its byte, which may be neither 0 nor 1.
  return with_element(dtype == DType::boolean ? DType::uint8 : dtype, [&](auto element) -> double {
    using T = decltype(element);
    std::memcpy(&element, from, sizeof element);
    if constexpr (tools::is_complex_v<T>)
      return element.imag() != 0 ? std::nan("") : static_cast<double>(element.real());
    else
      return static_cast<double>(static_cast<tools::Partial<T>>(element));
  });
}

bool is_element(const void* from, DType dtype, double expected, int averaged) {
  const double value = load_element(from, dtype);
  if (value == expected) return true;
  const ElementKind kind = row_of(dtype).kind;
  if (averaged == 0 || (kind != ElementKind::floating && kind != ElementKind::complex)) return false;
  // Beyond some, errors to either side make up for one another.
  const int roundings = std::min(averaged + 1, 16);
  return with_element(dtype, [&](auto element) { return is_near<decltype(element)>(value, expected, roundings); });
}

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
