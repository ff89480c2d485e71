// A store that counts what goes through it to the one behind: keys; bytes of keys and values, asked for or answered
// (not what a wire adds to them); and rounds: trips to the store and back, one after the other.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <col/store.hpp>

#include "store/base/run.hpp"

namespace col::test {

class CountingStore final : public Store, public store::RunExtension {
 public:
  explicit CountingStore(std::shared_ptr<Store> store) : store_(std::move(store)) {}

  void set(std::string_view key, std::string_view value) override {
    count(key.size() + value.size());
    store_->set(key, value);
  }
  std::optional<std::string> get(std::string_view key) override {
    auto value = store_->get(key);
    const std::size_t bytes = key.size() + (value ? value->size() : 0);
    count(bytes);
    got_bytes_ += bytes;
    ++gets_;
    return value;
  }
  std::string wait(std::string_view key, WaitContext& wait) override {
    std::string value = store_->wait(key, wait);
    count(key.size() + value.size());
    return value;
  }
  std::int64_t add(std::string_view key, std::int64_t delta) override {
    count(key.size() + sizeof delta);
    return store_->add(key, delta);
  }
  std::optional<std::string> compare_set(std::string_view key, std::optional<std::string_view> expected,
                                         std::string_view desired) override {
    auto before = store_->compare_set(key, expected, desired);
    count(key.size() + desired.size() + (before ? before->size() : 0));
    return before;
  }
  bool erase(std::string_view key) override {
    count(key.size());
    return store_->erase(key);
  }
  std::size_t num_keys(std::string_view prefix) override { return store_->num_keys(prefix); }
  // One round, whatever the number of calls.
  void run(std::span<store::Call> calls, WaitContext& wait, const store::Answered& answered) override {
    std::size_t bytes = 0;
    for (const store::Call& call : calls) bytes += call.key.size() + call.value.size();
    count(bytes, calls.size());
    store::run(*store_, calls, wait, [&](std::size_t i) {
      if (calls[i].answer) bytes_ += calls[i].answer->size();
      return !answered || answered(i);
    });
  }

  std::size_t bytes() const { return bytes_; }
  std::size_t rounds() const { return rounds_; }
  std::size_t keys() const { return keys_; }
  // The part of these that get() took: how often a rank looks depends on how long it waits.
  std::size_t got_bytes() const { return got_bytes_; }
  std::size_t gets() const { return gets_; }

 private:
  void count(std::size_t bytes, std::size_t keys = 1) {
    bytes_ += bytes;
    keys_ += keys;
    ++rounds_;
  }

  const std::shared_ptr<Store> store_;  // shared with the other ranks
  std::atomic<std::size_t> bytes_{0}, rounds_{0}, keys_{0}, got_bytes_{0}, gets_{0};
};

}  // namespace col::test
