#include "store/key_lock.hpp"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

#include <fmt/format.h>

#include <col/error.hpp>
#include <col/job.hpp>

#include "core/clock/clock.hpp"
#include "core/duration.hpp"
#include "core/hash.hpp"
#include "store/base/text.hpp"
#include "store/directory.hpp"

namespace col::store {
namespace {

using namespace std::chrono_literals;

// A lock is held for one write of a small file. The kernel's own wait (F_OFD_SETLKW) has no deadline.
constexpr Duration kFirstLockPause = 50us;
constexpr Duration kLongestLockPause = 2ms;

off_t offset_of(std::string_view name) noexcept {
  return static_cast<off_t>(core::Hash().add(name).value() >> 2);  // off_t is signed, and the byte's end must fit too
}

}  // namespace

KeyLock::KeyLock(const Directory& directory, std::string_view name, std::string_view key, Duration timeout)
    : file_(directory.open_lock()), offset_(offset_of(name)) {
  const Deadline deadline = Deadline::after(timeout);
  for (Duration pause = kFirstLockPause; !apply(F_WRLCK); pause = std::min(pause * 2, kLongestLockPause)) {
    if (errno != EAGAIN && errno != EACCES && errno != EINTR) throw_file_error(errno, "lock a key", directory.path());
    if (deadline.expired()) {
      throw Error(ErrorCode::io,
                  fmt::format("cannot lock {} in store directory '{}': another process has held the lock for {}; "
                              "find it (stopped, or on a host that hangs) with `fuser -v {}/lock` and end it",
                              describe_key(key), printable(directory.path()), core::format_duration(timeout),
                              printable(directory.path())));
    }
    core::sleep_for(std::min(pause, deadline.remaining()));
  }
}

// Unlocks in words: a child forked meanwhile by another thread shares the open file, and would keep the lock.
KeyLock::~KeyLock() {
  apply(F_UNLCK);
}

bool KeyLock::apply(short type) noexcept {
  struct flock range {};
  range.l_type = type;
  range.l_whence = SEEK_SET;
  range.l_start = offset_;
  range.l_len = 1;
  return ::fcntl(file_.get(), F_OFD_SETLK, &range) == 0;
}

}  // namespace col::store
