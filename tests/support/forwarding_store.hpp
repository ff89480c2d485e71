// A store that passes every call on to another one: for stores of tests that change some of the calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <col/store.hpp>

namespace col::test {

class ForwardingStore : public Store {
 public:
  explicit ForwardingStore(std::shared_ptr<Store> store) : store_(std::move(store)) {}

  void set(std::string_view key, std::string_view value) override { store_->set(key, value); }
  std::optional<std::string> get(std::string_view key) override { return store_->get(key); }
  std::string wait(std::string_view key, WaitContext& wait) override { return store_->wait(key, wait); }
  std::int64_t add(std::string_view key, std::int64_t delta) override { return store_->add(key, delta); }
  std::optional<std::string> compare_set(std::string_view key, std::optional<std::string_view> expected,
                                         std::string_view desired) override {
    return store_->compare_set(key, expected, desired);
  }
  bool erase(std::string_view key) override { return store_->erase(key); }
  std::size_t num_keys(std::string_view prefix) override { return store_->num_keys(prefix); }

 private:
  const std::shared_ptr<Store> store_;
};

}  // namespace col::test
