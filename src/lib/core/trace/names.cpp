#include "core/trace/names.hpp"

#include <map>
#include <mutex>
#include <utility>
#include <vector>

namespace col::core {
namespace {

struct Table {
  std::mutex mutex;
  std::map<std::string, std::uint16_t, std::less<>> numbers;
  std::function<void(std::uint16_t, const std::string&)> listener;

  // Never destroyed: calls may still be made while the process ends.
  static Table& instance() {
    static auto* const table = new Table;
    return *table;
  }
};

}  // namespace

std::uint16_t Names::number(std::string_view name) {
  if (name.empty()) return 0;
  Table& table = Table::instance();
  const std::lock_guard lock(table.mutex);
  if (const auto known = table.numbers.find(name); known != table.numbers.end()) return known->second;
  if (table.numbers.size() + 1 >= kMost) return 0;
  const auto number = static_cast<std::uint16_t>(table.numbers.size() + 1);
  table.numbers.emplace(name, number);
  if (table.listener) table.listener(number, std::string(name));
  return number;
}

void Names::listen(std::function<void(std::uint16_t, const std::string&)> listener) {
  Table& table = Table::instance();
  const std::lock_guard lock(table.mutex);
  table.listener = std::move(listener);
  if (!table.listener) return;
  for (const auto& [name, number] : table.numbers) table.listener(number, name);
}

}  // namespace col::core
