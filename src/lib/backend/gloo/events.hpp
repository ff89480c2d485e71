// What the events of a rank's poller are about.
#pragma once

#include <cstdint>

#include "net/poller.hpp"

namespace col::gloo_backend {

enum class Target : std::uint32_t { listener, caller, call, connection };
constexpr std::uint64_t event_id(Target target, std::uint32_t number = 0) noexcept {
  return std::uint64_t{static_cast<std::uint32_t>(target)} << 32 | number;
}
constexpr Target target_of(std::uint64_t id) noexcept {
  return static_cast<Target>(id >> 32);
}
constexpr std::uint32_t number_of(std::uint64_t id) noexcept {
  return static_cast<std::uint32_t>(id);
}

// By errno.
[[noreturn]] void throw_errno(const char* what);

}  // namespace col::gloo_backend
