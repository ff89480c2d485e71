// Sleeps until a file appears in a directory, or for some time. Uses inotify if there is any.
//
// inotify instances are few (128 per user by default) and slow to close, so a store keeps its instances for later waits
// (WatcherPool). Without an instance, sleep_for() just sleeps. On network file systems, inotify never reports what
// other hosts do. So callers must look again at intervals in any case.
#pragma once

#include <sys/types.h>

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <col/types.hpp>

#include "core/unique_fd.hpp"

namespace col::store {

// Used by one thread at a time.
class Watcher {
 public:
  // An instance without inotify when `use_inotify` is false or the system refuses one.
  explicit Watcher(bool use_inotify) noexcept;

  // From here on until stop(), no file that is renamed into `directory` is missed. After a failure, sleep_for() only
  // sleeps.
  void start(const std::string& directory) noexcept;
  void stop() noexcept;
  // Returns when a file `name` has been renamed into the directory since start() or the last return, when the
  // directory itself was removed, after a signal, or after `budget`.
  void sleep_for(std::string_view name, Duration budget) noexcept;

  // True if an event ends the next sleep_for().
  bool notifies() const noexcept { return watch_ >= 0; }
  bool notified() const noexcept { return static_cast<bool>(inotify_); }
  // False after a fork: the parent's events would be taken from it.
  bool usable_here() const noexcept;

 private:
  bool read_events(std::string_view name) noexcept;

  core::UniqueFd inotify_;
  int watch_ = -1;
  pid_t owner_;
};

class WatcherPool {
 public:
  explicit WatcherPool(bool use_inotify) noexcept : use_inotify_(use_inotify) {}

  std::unique_ptr<Watcher> take();
  void give_back(std::unique_ptr<Watcher> watcher) noexcept;

 private:
  const bool use_inotify_;
  std::mutex mutex_;  // guards idle_
  std::vector<std::unique_ptr<Watcher>> idle_;
};

// A watcher of the pool that watches `directory` for as long as this lives.
class Watch {
 public:
  Watch(WatcherPool& pool, const std::string& directory) : pool_(pool), watcher_(pool.take()) {
    watcher_->start(directory);
  }
  ~Watch() {
    watcher_->stop();
    pool_.give_back(std::move(watcher_));
  }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  void sleep_for(std::string_view name, Duration budget) noexcept { watcher_->sleep_for(name, budget); }
  bool notifies() const noexcept { return watcher_->notifies(); }

 private:
  WatcherPool& pool_;
  std::unique_ptr<Watcher> watcher_;
};

}  // namespace col::store
