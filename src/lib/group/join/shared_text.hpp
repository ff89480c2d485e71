// A text that the ranks of one host read from one of them, instead of each from the store.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/unique_fd.hpp"

namespace col::group {

// Memory without a name that holds `text`, for as long as the descriptor is open. None if the kernel has none to give.
core::UniqueFd share_text(std::string_view text) noexcept;

// What the process `pid` has shared as `descriptor`. Nothing if this process may not read it, or if the descriptor has
// become something else: callers check what they read.
std::optional<std::string> shared_text(std::int64_t pid, int descriptor);

}  // namespace col::group
