#include "store/base/text.hpp"

#include <charconv>

#include <fmt/format.h>

#include <col/error.hpp>

namespace col::store {
namespace {

constexpr std::size_t kHead = 96;  // bytes shown of either end of a long text: scopes come first, names last
constexpr std::size_t kTail = 48;

void append_escaped(std::string& text, std::string_view bytes) {
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte > 0x7e || c == '\\' || c == '\'') {
      text += fmt::format("\\x{:02x}", byte);
    } else {
      text += c;
    }
  }
}

}  // namespace

std::string printable(std::string_view bytes) {
  std::string text;
  if (bytes.size() <= kHead + kTail) {
    append_escaped(text, bytes);
    return text;
  }
  append_escaped(text, bytes.substr(0, kHead));
  text += fmt::format("...({} bytes)...", bytes.size() - kHead - kTail);
  append_escaped(text, bytes.substr(bytes.size() - kTail));
  return text;
}

std::string describe_key(std::string_view key) {
  return fmt::format("key '{}'", printable(key));
}

std::int64_t add_decimal(std::string_view key, const std::optional<std::string>& value, std::int64_t delta) {
  std::int64_t number = 0;
  if (value) {
    const char* end = value->data() + value->size();
    const auto [stop, error] = std::from_chars(value->data(), end, number);
    if (error != std::errc{} || stop != end) {
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format("cannot add to {}: its value '{}' is no decimal 64-bit number; erase it or add to another "
                      "key",
                      describe_key(key), printable(*value)));
    }
  }
  std::int64_t sum = 0;
  if (__builtin_add_overflow(number, delta, &sum)) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("cannot add {} to {}: the sum with {} does not fit in 64 bits; erase the key to start over",
                            delta, describe_key(key), number));
  }
  return sum;
}

std::optional<std::string> percent_decoded(std::string_view path) {
  std::string decoded;
  for (std::size_t i = 0; i < path.size(); ++i) {
    if (path[i] != '%') {
      decoded += path[i];
      continue;
    }
    unsigned byte = 0;
    const std::string_view digits = path.substr(i + 1, 2);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), byte, 16);
    if (digits.size() != 2 || error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
    decoded += static_cast<char>(byte);
    i += 2;
  }
  return decoded;
}

}  // namespace col::store
