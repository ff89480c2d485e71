// Names of enumerators: one table per enumeration serves to_string and from_string.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include <col/error.hpp>

namespace col::core {

// The name of value number `index`; "?" outside the table.
template <std::size_t N>
constexpr std::string_view name_at(const std::array<std::string_view, N>& names, std::size_t index) noexcept {
  return index < N ? names[index] : std::string_view("?");
}

// The value of that name; throws invalid_argument: "unknown <what> 'x'; use one of a, b, c".
template <class Enum, std::size_t N>
Enum value_of(const std::array<std::string_view, N>& names, std::string_view name, std::string_view what) {
  for (std::size_t i = 0; i < N; ++i)
    if (names[i] == name) return static_cast<Enum>(i);
  std::string text = "unknown ";
  text.append(what).append(" '").append(name).append("'; use one of ");
  for (std::size_t i = 0; i < N; ++i) text.append(i == 0 ? "" : ", ").append(names[i]);
  throw Error(ErrorCode::invalid_argument, text);
}

}  // namespace col::core
