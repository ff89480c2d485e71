// The surroundings in which colrun runs.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace col::colrun {

struct Surroundings {
  std::string self = "colrun";               // argv[0]
  const char* const* environment = nullptr;  // null-terminated, as ::environ; null: none
  // How many processors this process may use. Only called if it matters, for example for -n auto and -n gpu.
  std::function<int()> processors = [] { return 1; };
  std::function<int()> gpus = [] { return 0; };

  // An empty value counts as unset.
  std::optional<std::string_view> variable(std::string_view name) const;
};

}  // namespace col::colrun
