// Store in a directory.
//
// Readers never lock: a file in keys/ is whole and never changes, a new value is a new file renamed over it. All
// writers of a key take its lock, set() and erase() too: a set() between the read and the write of an add() would be
// lost otherwise. Counting keys takes no lock either: a key that is set, overwritten or erased meanwhile may be missed.
#include "store/file_store.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "store/base/text.hpp"
#include "store/directory.hpp"
#include "store/key_file.hpp"
#include "store/key_lock.hpp"
#include "store/watcher.hpp"

namespace col {
namespace store {
namespace {

using namespace std::chrono_literals;

// How soon wait() looks again when nobody tells: at once for a rendezvous, seldom for a long wait.
constexpr Duration kFirstPause = 1ms;
constexpr Duration kLongestPause = 50ms;

class FileStore final : public Store {
 public:
  FileStore(const std::string& directory, const FileStoreOptions& options)
      : directory_(directory), options_(options), watchers_(options.use_inotify) {}

  void set(std::string_view key, std::string_view value) override {
    const FileName file = file_name(key, options_.hash);
    const KeyLock lock = locked(file, key);
    save(file, key, value);
  }

  std::optional<std::string> get(std::string_view key) override { return load(file_name(key, options_.hash), key); }

  std::string wait(std::string_view key, WaitContext& wait) override {
    wait.describe(describe_key(key));
    const FileName file = file_name(key, options_.hash);
    if (auto value = load(file, key)) return *std::move(value);  // the common case needs no watch
    Watch watch(watchers_, directory_.keys_path());
    for (Duration pause = kFirstPause;; pause = std::min(pause * 2, kLongestPause)) {
      // Looking after the watch has begun, and before sleeping: no key can slip in between unseen.
      if (auto value = load(file, key)) return *std::move(value);
      wait.check();
      const bool is_told = wait.sleeps_until_told() && watch.notifies();
      watch.sleep_for(file.name, is_told ? wait.slice() : std::min(pause, wait.slice()));
    }
  }

  std::int64_t add(std::string_view key, std::int64_t delta) override {
    const FileName file = file_name(key, options_.hash);
    const KeyLock lock = locked(file, key);
    const std::int64_t sum = add_decimal(key, load(file, key), delta);
    save(file, key, std::to_string(sum));
    return sum;
  }

  std::optional<std::string> compare_set(std::string_view key, std::optional<std::string_view> expected,
                                         std::string_view desired) override {
    const FileName file = file_name(key, options_.hash);
    const KeyLock lock = locked(file, key);
    auto before = load(file, key);
    if (before == expected) save(file, key, desired);
    return before;
  }

  bool erase(std::string_view key) override {
    const FileName file = file_name(key, options_.hash);
    const KeyLock lock = locked(file, key);
    if (!file.bucket) return directory_.remove(file.name);
    const auto bucket = directory_.read(file.name);
    if (!bucket || !bucket_find(*bucket, key)) return false;
    const std::string others = bucket_without(*bucket, key);
    if (others.empty()) return directory_.remove(file.name);
    directory_.write(file.name, others);
    return true;
  }

  std::size_t num_keys(std::string_view prefix) override {
    const std::string encoded = encode(prefix);
    std::size_t count = 0;
    for (const std::string& name : directory_.names()) {
      if (is_bucket(name)) {
        count += bucket_count(directory_.read(name).value_or(""), prefix);
      } else if (is_key_file(name) && name.starts_with(encoded)) {
        ++count;
      }
    }
    return count;
  }

 private:
  KeyLock locked(const FileName& file, std::string_view key) const {
    return {directory_, file.name, key, options_.lock_timeout};
  }

  std::optional<std::string> load(const FileName& file, std::string_view key) const {
    auto content = directory_.read(file.name);
    if (!content || !file.bucket) return content;
    return bucket_find(*content, key);
  }

  // Requires: the lock of `file` is held.
  void save(const FileName& file, std::string_view key, std::string_view value) const {
    if (!file.bucket) return directory_.write(file.name, value);
    directory_.write(file.name, bucket_with(directory_.read(file.name).value_or(""), key, value));
  }

  const Directory directory_;
  const FileStoreOptions options_;
  WatcherPool watchers_;
};

}  // namespace

std::shared_ptr<Store> make_file_store(const std::string& directory, const FileStoreOptions& options) {
  return std::make_shared<FileStore>(directory, options);
}

}  // namespace store

std::shared_ptr<Store> make_file_store(const std::string& directory) {
  return store::make_file_store(directory, {});
}

}  // namespace col
