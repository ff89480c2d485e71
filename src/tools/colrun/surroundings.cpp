#include "colrun/surroundings.hpp"

namespace col::colrun {

std::optional<std::string_view> Surroundings::variable(std::string_view name) const {
  for (const char* const* entry = environment; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    if (!text.starts_with(name) || text.size() <= name.size() + 1 || text[name.size()] != '=') continue;
    return text.substr(name.size() + 1);
  }
  return std::nullopt;
}

}  // namespace col::colrun
