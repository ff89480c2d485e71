// Names of groups, algorithms and labels by numbers, for this process. A name is never forgotten, so that what was
// recorded once can be read for as long as the process lives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace col::core {

class Names {
 public:
  static constexpr std::size_t kMost = 1 << 16;

  // From 1. 0: an empty name, or one too many. Takes a lock.
  static std::uint16_t number(std::string_view name);
  // Calls it for each name so far, and then for each that comes, while a lock is held. It replaces the one before.
  static void listen(std::function<void(std::uint16_t number, const std::string& name)> listener);
};

}  // namespace col::core
