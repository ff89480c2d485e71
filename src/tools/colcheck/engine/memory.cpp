#include "colcheck/engine/memory.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include <fmt/format.h>

#include "colcheck/engine/guard.hpp"
#include "common/gpu.hpp"

namespace col::colcheck {
namespace {

constexpr std::size_t kAlignment = 64;
constexpr std::size_t kMargin = 64;  // at least, on both sides
constexpr std::size_t kGpuPage = 4096;
constexpr std::byte kPattern{0xa5};

constexpr std::array<std::string_view, kPlacementCount> kPlacements = {"margins", "guard_after", "guard_before",
                                                                       "odd_element", "odd_byte"};

bool is_guarded(Placement placement) {
  return placement == Placement::guard_after || placement == Placement::guard_before;
}

std::size_t shift_of(Placement placement, std::size_t element_size) {
  if (placement == Placement::odd_byte) return 1;
  return placement == Placement::odd_element ? element_size : 0;
}

}  // namespace

std::string_view to_string(Placement placement) {
  return kPlacements[static_cast<std::size_t>(placement)];
}

std::optional<Placement> placement_from_string(std::string_view name) {
  const auto found = std::find(kPlacements.begin(), kPlacements.end(), name);
  if (found == kPlacements.end()) return std::nullopt;
  return static_cast<Placement>(found - kPlacements.begin());
}

class Memory::Pages : public Guarded {
 public:
  using Guarded::Guarded;
};

Memory::Memory() = default;
Memory::~Memory() = default;

void Memory::assign(const Bytes& content, Placement placement, std::size_t element_size, Device::Type device) {
  size_ = content.size();
  held_.clear();
  pages_.reset();
  gpu_.reset();
  if (device == Device::Type::cuda) return assign_on_gpu(content, placement, element_size);
  if (is_guarded(placement)) {
    pages_ = std::make_unique<Pages>(size_);
    data_ = placement == Placement::guard_after ? pages_->end() - size_ : pages_->begin();
    if (size_ > 0) std::memcpy(data_, content.data(), size_);
    expected_ = content;
    start_ = 0;
    return;
  }
  held_.assign(size_ + 2 * kMargin + 2 * kAlignment, kPattern);
  const auto address = reinterpret_cast<std::uintptr_t>(held_.data()) + kMargin;
  const std::size_t aligned = kMargin + (kAlignment - address % kAlignment) % kAlignment;
  start_ = aligned + shift_of(placement, element_size);
  data_ = held_.data() + start_;
  std::copy(content.begin(), content.end(), data_);
  expected_ = held_;
}

// What the driver allocates begins at a boundary of 256 bytes at least.
void Memory::assign_on_gpu(const Bytes& content, Placement placement, std::size_t element_size) {
  const std::size_t zone = is_guarded(placement) ? kGpuPage : 2 * kMargin;
  const std::size_t room = is_guarded(placement) ? (size_ + kGpuPage - 1) / kGpuPage * kGpuPage : size_;
  start_ = placement == Placement::guard_after ? zone + room - size_ : zone + shift_of(placement, element_size);
  expected_.assign(room + 2 * zone, kPattern);
  std::copy(content.begin(), content.end(), expected_.begin() + static_cast<std::ptrdiff_t>(start_));
  gpu_ = std::make_unique<tools::GpuBuffer>(expected_.size());
  gpu_->write(0, expected_);
  data_ = gpu_->data() + start_;
}

void Memory::expect(std::size_t offset, const Bytes& content) {
  std::copy(content.begin(), content.end(), expected_.begin() + static_cast<std::ptrdiff_t>(start_ + offset));
}

TensorView Memory::view(std::size_t offset, std::size_t count, DType dtype) const {
  return {data_ + offset, count, dtype, gpu_ ? gpu_->device() : Device()};
}

Bytes Memory::read(std::size_t offset, std::size_t bytes) const {
  if (!gpu_) return {data_ + offset, data_ + offset + bytes};
  Bytes content(bytes);
  gpu_->read(start_ + offset, content);
  return content;
}

void Memory::write(std::size_t offset, const Bytes& content) {
  if (gpu_)
    gpu_->write(start_ + offset, content);
  else
    std::copy(content.begin(), content.end(), data_ + offset);
}

std::string Memory::problem(std::size_t element_size) const {
  if (data_ == nullptr) return {};
  if (gpu_) return problem_on_gpu(element_size);
  if (!pages_) return wrong_byte(held_, element_size);
  const std::string wrong = wrong_byte({data_, data_ + size_}, element_size);
  if (!wrong.empty()) return wrong;
  if (pages_->touched_before()) return "the page before the buffer was touched";
  if (pages_->touched_after()) return "the page after the buffer was touched";
  return {};
}

// The GPU says whether there is one, and a copy which: that is what a GPU without kernels of ours is left with.
std::string Memory::problem_on_gpu(std::size_t element_size) const {
  const std::optional<Difference> found = gpu_->compare(expected_);
  if (found && found->count == 0) return {};
  Bytes all(gpu_->size());
  gpu_->read(0, all);
  std::string wrong = wrong_byte(all, element_size);
  if (wrong.empty() && found)
    wrong = fmt::format("the GPU finds {} of {} bytes wrong, the first at {}, and a copy of them on the host is right",
                        found->count, all.size(), found->first);
  return wrong;
}

// `got` is what expected_ is about.
std::string Memory::wrong_byte(const Bytes& got, std::size_t element_size) const {
  const auto [found_at, wanted_at] = std::mismatch(got.begin(), got.end(), expected_.begin());
  if (found_at == got.end()) return {};
  const std::ptrdiff_t at = found_at - got.begin() - static_cast<std::ptrdiff_t>(start_);
  const auto found = std::to_integer<unsigned>(*found_at), wanted = std::to_integer<unsigned>(*wanted_at);
  if (at < 0) return fmt::format("the byte {} before the buffer was overwritten with {:#x}", -at, found);
  if (at >= static_cast<std::ptrdiff_t>(size_))
    return fmt::format("the byte {} after the buffer's end was overwritten with {:#x}",
                       at - static_cast<std::ptrdiff_t>(size_) + 1, found);
  return fmt::format("byte {} of {} (element {}) is {:#x}, not {:#x}", at, size_,
                     at / static_cast<std::ptrdiff_t>(element_size), found, wanted);
}

}  // namespace col::colcheck
