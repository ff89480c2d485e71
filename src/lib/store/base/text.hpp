// What the stores share: keys in messages, and numbers kept as text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace col::store {

// `bytes` for a one-line message: unprintable bytes as \xNN, and the middle of a long text left out.
std::string printable(std::string_view bytes);

// "key 'x'", as messages and WaitContext::describe() have it.
std::string describe_key(std::string_view key);

// The path of a URL, with its %XX replaced by the bytes that they encode. Nothing if a '%' is not followed by two
// hexadecimal digits.
std::optional<std::string> percent_decoded(std::string_view path);

// The sum that Store::add() stores and returns for a key with this `value`. Throws invalid_argument if `value` or the
// sum is not a decimal 64-bit number.
std::int64_t add_decimal(std::string_view key, const std::optional<std::string>& value, std::int64_t delta);

}  // namespace col::store
