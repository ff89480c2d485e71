#include "store/watcher.hpp"

#include <poll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include <col/job.hpp>

#include "core/clock/clock.hpp"
#include "core/log.hpp"

namespace col::store {
namespace {

// Idle instances that one store keeps: as many as ranks that are threads commonly wait at once.
constexpr std::size_t kMaxIdle = 8;
constexpr std::uint32_t kEvents = IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR;
// After these the caller must look: events were lost, or the watch is gone with the directory.
constexpr std::uint32_t kLookAnyway = IN_DELETE_SELF | IN_MOVE_SELF | IN_UNMOUNT | IN_IGNORED;

}  // namespace

Watcher::Watcher(bool use_inotify) noexcept
    : inotify_(use_inotify ? ::inotify_init1(IN_NONBLOCK | IN_CLOEXEC) : -1), owner_(::getpid()) {
  if (use_inotify && !inotify_) {
    core::log::debug("store: no inotify ({}), waits look for their keys at intervals", std::strerror(errno));
  }
}

bool Watcher::usable_here() const noexcept {
  return owner_ == ::getpid();
}

void Watcher::start(const std::string& directory) noexcept {
  if (inotify_) watch_ = ::inotify_add_watch(inotify_.get(), directory.c_str(), kEvents);
}

void Watcher::stop() noexcept {
  if (watch_ >= 0) ::inotify_rm_watch(inotify_.get(), std::exchange(watch_, -1));
}

void Watcher::sleep_for(std::string_view name, Duration budget) noexcept {
  if (watch_ < 0) return core::sleep_for(budget);
  const Deadline deadline = Deadline::after(budget);
  while (true) {
    pollfd file{inotify_.get(), POLLIN, 0};
    const bool is_interrupted = core::poll_for({&file, 1}, deadline.remaining()) < 0;
    if (read_events(name) || is_interrupted || deadline.expired()) return;
  }
}

// Takes what has been reported; returns whether the caller should look for its file.
bool Watcher::read_events(std::string_view name) noexcept {
  alignas(inotify_event) std::array<char, 4096> buffer;
  bool look = false;
  ssize_t size = 0;
  while ((size = ::read(inotify_.get(), buffer.data(), buffer.size())) > 0) {
    for (ssize_t at = 0; at < size;) {
      inotify_event event;
      std::memcpy(&event, buffer.data() + at, sizeof event);
      const char* file = buffer.data() + at + sizeof event;  // padded with zeros, absent when len is 0
      if ((event.mask & IN_Q_OVERFLOW) != 0) look = true;
      if (event.wd == watch_) {  // else left over from an earlier watch
        if ((event.mask & kLookAnyway) != 0) look = true;
        if (event.len > 0 && name == file) look = true;
      }
      at += static_cast<ssize_t>(sizeof event + event.len);
    }
  }
  return look;
}

std::unique_ptr<Watcher> WatcherPool::take() {
  const std::lock_guard lock(mutex_);
  while (!idle_.empty()) {
    auto watcher = std::move(idle_.back());
    idle_.pop_back();
    if (watcher->usable_here()) return watcher;
  }
  return std::make_unique<Watcher>(use_inotify_);
}

void WatcherPool::give_back(std::unique_ptr<Watcher> watcher) noexcept {
  const std::lock_guard lock(mutex_);
  // One without inotify is not worth keeping: the next wait may get it.
  if (watcher->notified() && idle_.size() < kMaxIdle) idle_.push_back(std::move(watcher));
}

}  // namespace col::store
