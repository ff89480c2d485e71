// Sizes as people write them: "512", "64K", "32M", "1G". K is 1024.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace col::core {

// A whole number of bytes with one of the units K, M, G, T or none, in upper or lower case. Nothing if it is malformed
// or does not fit.
std::optional<std::size_t> parse_bytes(std::string_view text) noexcept;

// The shortest exact form that parse_bytes() takes: "64K", "1000".
std::string format_bytes(std::size_t bytes);

}  // namespace col::core
