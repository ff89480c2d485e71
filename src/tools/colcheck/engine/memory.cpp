#include "colcheck/engine/memory.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include <fmt/format.h>

#include "colcheck/engine/guard.hpp"

namespace col::colcheck {
namespace {

constexpr std::size_t kAlignment = 64;
constexpr std::size_t kMargin = 64;  // at least, on both sides
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

void Memory::assign(const Bytes& content, Placement placement, std::size_t element_size) {
  size_ = content.size();
  if (is_guarded(placement)) {
    held_.clear();
    pages_ = std::make_unique<Pages>(size_);
    data_ = placement == Placement::guard_after ? pages_->end() - size_ : pages_->begin();
    if (size_ > 0) std::memcpy(data_, content.data(), size_);
    expected_ = content;
    return;
  }
  pages_.reset();
  held_.assign(size_ + 2 * kMargin + 2 * kAlignment, kPattern);
  const auto address = reinterpret_cast<std::uintptr_t>(held_.data()) + kMargin;
  const std::size_t aligned = kMargin + (kAlignment - address % kAlignment) % kAlignment;
  data_ = held_.data() + aligned + shift_of(placement, element_size);
  std::copy(content.begin(), content.end(), data_);
  expected_ = held_;
}

void Memory::expect(std::size_t offset, const Bytes& content) {
  const std::size_t start = pages_ ? 0 : static_cast<std::size_t>(data_ - held_.data());
  std::copy(content.begin(), content.end(), expected_.begin() + static_cast<std::ptrdiff_t>(start + offset));
}

std::string Memory::problem(std::size_t element_size) const {
  if (data_ == nullptr) return {};
  const std::byte* const all = pages_ ? data_ : held_.data();
  const std::byte* const end = all + expected_.size();
  const auto [got, want] = std::mismatch(all, end, expected_.begin());
  if (got != end) {
    const std::ptrdiff_t at = got - data_;
    const auto found = std::to_integer<unsigned>(*got), wanted = std::to_integer<unsigned>(*want);
    if (at < 0) return fmt::format("the byte {} before the buffer was overwritten with {:#x}", -at, found);
    if (at >= static_cast<std::ptrdiff_t>(size_))
      return fmt::format("the byte {} after the buffer's end was overwritten with {:#x}",
                         at - static_cast<std::ptrdiff_t>(size_) + 1, found);
    return fmt::format("byte {} of {} (element {}) is {:#x}, not {:#x}", at, size_,
                       at / static_cast<std::ptrdiff_t>(element_size), found, wanted);
  }
  if (pages_ && pages_->touched_before()) return "the page before the buffer was touched";
  if (pages_ && pages_->touched_after()) return "the page after the buffer was touched";
  return {};
}

}  // namespace col::colcheck
