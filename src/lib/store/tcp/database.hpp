// The keys and values of a TCP store's server, within a budget. Used by one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "store/tcp/budget.hpp"

namespace col::store::tcp {

// For maps by key with look-ups by views.
struct KeyHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view key) const noexcept { return std::hash<std::string_view>()(key); }
};
template <class Value>
using KeyMap = std::unordered_map<std::string, Value, KeyHash, std::equal_to<>>;

class Database {
 public:
  Database(Budget& budget, std::size_t max_value_bytes) noexcept : budget_(budget), max_value_bytes_(max_value_bytes) {}

  // Functions that store something throw resource if the value is too long or the budget is used up. Nothing has
  // changed then.
  void set(std::string_view key, std::string_view value);
  // Null if the key is not set.
  SharedBytes find(std::string_view key) const;
  // As Store::add().
  std::int64_t add(std::string_view key, std::int64_t delta);
  // As Store::compare_set(). Null for a key that was not set.
  SharedBytes compare_set(std::string_view key, std::optional<std::string_view> expected, std::string_view desired);
  bool erase(std::string_view key);
  // Looks at every key. Only people and tools ask for it, and rarely.
  std::size_t count(std::string_view prefix) const;

 private:
  struct Entry {
    SharedBytes value;
    Charge key;
  };
  Charge charge(std::size_t bytes) const;

  Budget& budget_;
  const std::size_t max_value_bytes_;
  KeyMap<Entry> entries_;
};

// The error of a request for which the budget has no room.
[[noreturn]] void throw_full(const Budget& budget);

}  // namespace col::store::tcp
