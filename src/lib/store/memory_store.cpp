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

}  // namespace

std::shared_ptr<Store> make_memory_store() {
  return std::make_shared<MemoryStore>();
}

}  // namespace col
