// What needs no medium: what all stores have, the store in memory, and the view with a prefix.
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <col/error.hpp>
#include <col/store.hpp>

#include "store/base/text.hpp"

namespace col {
namespace {

class MemoryStore final : public Store {
 public:
  void set(std::string_view key, std::string_view value) override {
    const std::lock_guard lock(mutex_);
    assign(key, value);
  }

  std::optional<std::string> get(std::string_view key) override {
    const std::lock_guard lock(mutex_);
    return find(key);
  }

  std::string wait(std::string_view key, WaitContext& wait) override {
    wait.describe(store::describe_key(key));
    while (true) {
      {
        std::unique_lock lock(mutex_);
        if (!values_.contains(key)) changed_.wait_for(lock, wait.slice());
        if (auto value = find(key)) return *std::move(value);
      }
      wait.check();  // without the lock, because an observer may look into this store to find the missing ranks
    }
  }

  std::int64_t add(std::string_view key, std::int64_t delta) override {
    const std::lock_guard lock(mutex_);
    const std::int64_t sum = store::add_decimal(key, find(key), delta);
    assign(key, std::to_string(sum));
    return sum;
  }

  std::optional<std::string> compare_set(std::string_view key, std::optional<std::string_view> expected,
                                         std::string_view desired) override {
    const std::lock_guard lock(mutex_);
    auto before = find(key);
    if (before == expected) assign(key, desired);
    return before;
  }

  bool erase(std::string_view key) override {
    const std::lock_guard lock(mutex_);
    const auto found = values_.find(key);
    if (found == values_.end()) return false;
    values_.erase(found);
    return true;
  }

  std::size_t num_keys(std::string_view prefix) override {
    const std::lock_guard lock(mutex_);
    std::size_t count = 0;
    for (auto it = values_.lower_bound(prefix); it != values_.end() && it->first.starts_with(prefix); ++it) ++count;
    return count;
  }

 private:
  std::optional<std::string> find(std::string_view key) const {
    const auto found = values_.find(key);
    if (found == values_.end()) return std::nullopt;
    return found->second;
  }

  void assign(std::string_view key, std::string_view value) {
    const auto found = values_.find(key);
    if (found == values_.end()) {
      values_.emplace(key, value);
    } else {
      found->second = value;
    }
    changed_.notify_all();
  }

  std::mutex mutex_;  // guards values_
  std::condition_variable changed_;
  std::map<std::string, std::string, std::less<>> values_;
};

// A key of scope (p1, p2, …) is stored as the netstrings of the prefixes, a dot, and the key: "2:p1,2:p2,.key". The
// lengths make the list decodable whatever bytes it holds, and what follows a netstring is either a digit (a scope
// within) or the dot (a key of this one): so two scopes never share a key, and none sees the keys of those within it.
class PrefixStore final : public Store {
 public:
  // `store` is shared: every scope of it keeps it alive.
  PrefixStore(std::shared_ptr<Store> store, std::string scope) : store_(std::move(store)), scope_(std::move(scope)) {}

  // A scope within this one. It is a view of the same underlying store, not a view of a view: the dot would be twice
  // in its keys otherwise, and they could meet keys of this scope.
  std::shared_ptr<Store> within(std::string_view prefix) const {
    return std::make_shared<PrefixStore>(store_, scope_ + netstring(prefix));
  }

  static std::string netstring(std::string_view bytes) { return fmt::format("{}:{},", bytes.size(), bytes); }

  void set(std::string_view key, std::string_view value) override { store_->set(full(key), value); }
  std::optional<std::string> get(std::string_view key) override { return store_->get(full(key)); }
  std::string wait(std::string_view key, WaitContext& wait) override { return store_->wait(full(key), wait); }
  std::int64_t add(std::string_view key, std::int64_t delta) override { return store_->add(full(key), delta); }
  std::optional<std::string> compare_set(std::string_view key, std::optional<std::string_view> expected,
                                         std::string_view desired) override {
    return store_->compare_set(full(key), expected, desired);
  }
  bool erase(std::string_view key) override { return store_->erase(full(key)); }
  std::size_t num_keys(std::string_view prefix) override { return store_->num_keys(full(prefix)); }

 private:
  std::string full(std::string_view key) const {
    std::string text;
    text.reserve(scope_.size() + 1 + key.size());
    return text.append(scope_).append(".").append(key);
  }

  const std::shared_ptr<Store> store_;
  const std::string scope_;  // the netstrings of all prefixes, outermost first
};

}  // namespace

Store::~Store() = default;

std::string Store::wait_for(std::string_view key, Duration timeout) {
  WaitContext wait_context(Deadline::after(timeout));
  return wait(key, wait_context);
}

std::shared_ptr<Store> make_memory_store() {
  return std::make_shared<MemoryStore>();
}

std::shared_ptr<Store> make_prefix_store(std::shared_ptr<Store> store, std::string_view prefix) {
  if (!store) throw Error(ErrorCode::invalid_argument, "make_prefix_store was given no store; pass one");
  if (const auto* outer = dynamic_cast<const PrefixStore*>(store.get())) return outer->within(prefix);
  return std::make_shared<PrefixStore>(std::move(store), PrefixStore::netstring(prefix));
}

}  // namespace col
