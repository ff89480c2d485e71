#include "store/tcp/database.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include <col/error.hpp>

#include "core/byte_size.hpp"
#include "store/base/text.hpp"

namespace col::store::tcp {
namespace {

// What a key or a value costs beside its bytes, about.
constexpr std::size_t kOverheadBytes = 128;

}  // namespace

void throw_full(const Budget& budget) {
  throw Error(
      ErrorCode::resource,
      fmt::format("the store is full: {} of {} bytes are in use; erase keys, keep large data elsewhere, or start "
                  "the server with a larger limit (StoreServerSpec::max_total_bytes)",
                  budget.used(), budget.most()));
}

Charge Database::charge(std::size_t bytes) const {
  auto charge = budget_.charge(bytes + kOverheadBytes);
  if (!charge) throw_full(budget_);
  return *std::move(charge);
}

void Database::set(std::string_view key, std::string_view value) {
  if (value.size() > max_value_bytes_)
    throw Error(
        ErrorCode::resource,
        fmt::format("the value of {} has {} bytes, and the store takes {} at most; keep large data elsewhere, or "
                    "start the server with a larger limit (StoreServerSpec::max_value_bytes)",
                    describe_key(key), value.size(), max_value_bytes_));
  auto stored = std::make_shared<const ChargedBytes>(ChargedBytes{std::string(value), charge(value.size())});
  if (const auto found = entries_.find(key); found != entries_.end()) {
    found->second.value = std::move(stored);
  } else {
    Charge for_key = charge(key.size());
    entries_.emplace(key, Entry{std::move(stored), std::move(for_key)});
  }
}

SharedBytes Database::find(std::string_view key) const {
  const auto found = entries_.find(key);
  return found == entries_.end() ? nullptr : found->second.value;
}

std::int64_t Database::add(std::string_view key, std::int64_t delta) {
  const SharedBytes before = find(key);
  const std::int64_t sum = add_decimal(key, before ? std::optional(before->bytes) : std::nullopt, delta);
  set(key, std::to_string(sum));
  return sum;
}

SharedBytes Database::compare_set(std::string_view key, std::optional<std::string_view> expected,
                                  std::string_view desired) {
  SharedBytes before = find(key);
  const bool equal = before ? expected == std::string_view(before->bytes) : !expected;
  if (equal) set(key, desired);
  return before;
}

bool Database::erase(std::string_view key) {
  const auto found = entries_.find(key);
  if (found == entries_.end()) return false;
  entries_.erase(found);
  return true;
}

std::size_t Database::count(std::string_view prefix) const {
  if (prefix.empty()) return entries_.size();
  return static_cast<std::size_t>(std::count_if(entries_.begin(), entries_.end(),
                                                [&](const auto& entry) { return entry.first.starts_with(prefix); }));
}

}  // namespace col::store::tcp
