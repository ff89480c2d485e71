// What needs no medium: what all stores have, the store in memory, and the view with a prefix.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <col/error.hpp>
#include <col/store.hpp>

#include "core/clock/lock.hpp"
#include "store/base/doze.hpp"
#include "store/base/run.hpp"
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

  core::Mutex mutex_;  // guards values_
  core::Condition changed_;
  std::map<std::string, std::string, std::less<>> values_;
};

// A key of scope (p1, p2, …) is stored as the netstrings of the prefixes, a dot, and the key: "2:p1,2:p2,.key". The
// lengths make the list decodable whatever bytes it holds, and what follows a netstring is either a digit (a scope
// within) or the dot (a key of this one): so two scopes never share a key, and none sees the keys of those within it.
class PrefixStore final : public Store, public store::RunExtension {
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

  void run(std::span<store::Call> calls, WaitContext& wait, const store::Answered& answered) override {
    std::vector<store::Call> inner(calls.begin(), calls.end());
    for (store::Call& call : inner) call.key = full(call.key);
    store::run(*store_, inner, wait, [&](std::size_t i) {
      calls[i].answer = std::move(inner[i].answer);
      return !answered || answered(i);
    });
  }

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

namespace store {

void doze(Store& store, std::string_view key, WaitContext& wait) {
  if (wait.sleeps_until_told()) {
    store.wait(key, wait);
    return;
  }
  constexpr Duration kShortest = std::chrono::milliseconds(1);
  WaitContext brief(Deadline::after(std::max(wait.slice(), kShortest)), wait.page(), wait.record());
  try {
    store.wait(key, brief);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::timeout) throw;
  }
}

namespace {

// For stores that are in this process, or in files.
void run_one_by_one(Store& store, std::span<Call> calls, WaitContext& wait, const Answered& answered) {
  using Kind = Call::Kind;
  const auto goes_on = [&](std::size_t i) { return !answered || answered(i); };
  std::vector<std::size_t> waiting;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    Call& call = calls[i];
    switch (call.kind) {
      case Kind::set:
        store.set(call.key, call.value);
        break;
      case Kind::get:
        call.answer = store.get(call.key);
        break;
      case Kind::wait:
        waiting.push_back(i);
        continue;
      case Kind::compare_set:
        call.answer = store.compare_set(call.key, call.expected, call.value);
        break;
      case Kind::erase:
        if (store.erase(call.key)) call.answer = "";
        break;
    }
    if (!goes_on(i)) return;
  }
  for (;;) {
    std::vector<std::size_t> silent;
    for (const std::size_t i : waiting) {
      calls[i].answer = store.get(calls[i].key);
      if (!calls[i].answer)
        silent.push_back(i);
      else if (!goes_on(i))
        return;
    }
    if (silent.empty()) return;
    wait.check();
    doze(store, calls[silent.back()].key, wait);  // the last one mostly comes last
    waiting = std::move(silent);
  }
}

}  // namespace

void run(Store& store, std::span<Call> calls, WaitContext& wait, const Answered& answered) {
  if (calls.empty()) return;
  if (auto* const able = dynamic_cast<RunExtension*>(&store))
    able->run(calls, wait, answered);
  else
    run_one_by_one(store, calls, wait, answered);
}

}  // namespace store
}  // namespace col
