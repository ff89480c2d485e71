// What colrun finds around it.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace col::colrun {

struct Surroundings {
  std::string self = "colrun";                   // argv[0]
  const char* const* environment = nullptr;      // null-terminated, as ::environ; null: none
  int processors = 1;                            // that this process may use: how many ranks -n auto means
  std::function<int()> gpus = [] { return 0; };  // that this process may use; asked only for -n gpu

  // An empty value counts as unset.
  std::optional<std::string_view> variable(std::string_view name) const;
};

}  // namespace col::colrun
