// Lists in texts. As fmt::join(), which takes a second to compile wherever it is used.
#pragma once

#include <concepts>
#include <string>
#include <string_view>
#include <type_traits>

#include "core/joined.hpp"

namespace col::core {

// The parts of a list, numbers or words, with a separator between them.
template <class List>
std::string joined(const List& list, std::string_view separator) {
  std::string text;
  bool is_first = true;
  for (const auto& part : list) {
    if (!is_first) text += separator;
    is_first = false;
    if constexpr (std::integral<std::remove_cvref_t<decltype(part)>>)
      text += std::to_string(part);
    else
      text += part;
  }
  return text;
}

}  // namespace col::core
