#include <col/plan.hpp>

#include <array>

#include "core/names.hpp"

namespace col {
namespace {

constexpr std::array<std::string_view, 5> kKinds = {"send", "recv", "reduce", "copy", "convert"};
constexpr std::array<std::string_view, 4> kBuffers = {"input", "output", "scratch", "wide"};
constexpr std::array<std::string_view, 3> kOrders = {"any", "contiguous", "rank_order"};

}  // namespace

std::string_view to_string(Step::Kind kind) noexcept {
  return core::name_at(kKinds, static_cast<std::size_t>(kind));
}

std::string_view to_string(Buffer buffer) noexcept {
  return core::name_at(kBuffers, static_cast<std::size_t>(buffer));
}

std::string_view to_string(FoldOrder order) noexcept {
  return core::name_at(kOrders, static_cast<std::size_t>(order));
}

}  // namespace col
