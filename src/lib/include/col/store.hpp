// The store: how ranks find one another before they can talk. Keys are strings, values are bytes, both arbitrary.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <col/export.hpp>
#include <col/job.hpp>
#include <col/types.hpp>

namespace col {

// Thread safe; every operation but add and compare_set is idempotent. Errors: io (the medium refused), resource (full),
// and from wait() those of WaitContext::check().
class COL_EXPORT Store {
 public:
  virtual ~Store();

  // Sets `key` to `value`; readers see the old value or the new one, never a part.
  virtual void set(std::string_view key, std::string_view value) = 0;
  // The value, or nothing when the key is not set. Does not wait.
  virtual std::optional<std::string> get(std::string_view key) = 0;
  // Waits until `key` is set and returns its value. A timeout names the key.
  virtual std::string wait(std::string_view key, WaitContext& wait) = 0;
  // Adds `delta` to the decimal number in `key` (0 when not set) and returns the sum. Atomic. A value that is no number
  // is invalid_argument.
  virtual std::int64_t add(std::string_view key, std::int64_t delta) = 0;
  // Sets `key` to `desired` if its value is `expected` (nullopt: if it is not set). Returns the value that was there
  // before: the swap happened exactly when the result equals `expected`. Atomic.
  virtual std::optional<std::string> compare_set(std::string_view key, std::optional<std::string_view> expected,
                                                 std::string_view desired) = 0;
  // Removes `key`; returns whether it was set.
  virtual bool erase(std::string_view key) = 0;
  // Number of keys that start with `prefix`.
  virtual std::size_t num_keys(std::string_view prefix = {}) = 0;

  // wait() with nothing but a time limit.
  std::string wait_for(std::string_view key, Duration timeout);
};

// In this process's memory, for ranks that are threads.
COL_EXPORT std::shared_ptr<Store> make_memory_store();

// In a directory that all ranks can reach, created with mode 0700 when absent. A key is one file, written whole and
// renamed into place. Throws io when the directory cannot be created or written, and says which.
COL_EXPORT std::shared_ptr<Store> make_file_store(const std::string& directory);

// A view of `store` in which every key is prefixed. Scopes nest and cannot collide, whatever bytes the prefixes hold.
COL_EXPORT std::shared_ptr<Store> make_prefix_store(std::shared_ptr<Store> store, std::string_view prefix);

// The store of a URL: "file:///dir". Throws invalid_argument for any other scheme, naming those that work.
COL_EXPORT std::shared_ptr<Store> open_store(std::string_view url);

}  // namespace col
