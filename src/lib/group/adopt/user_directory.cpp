#include "group/adopt/user_directory.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include <col/error.hpp>

#include "core/clock/clock.hpp"
#include "core/duration.hpp"
#include "core/env.hpp"

namespace col::group::adopt {
namespace {

using namespace std::chrono_literals;

// The lock is held while a few small files are written. The kernel's own wait for it has no deadline.
constexpr Duration kFirstPause = 50us;
constexpr Duration kLongestPause = 2ms;

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
  throw Error(ErrorCode::io,
              fmt::format("'{}' {}; the ranks of a job meet there, so it must be a directory of user id {} with mode "
                          "0700: remove it, or set TMPDIR to a directory of your own",
                          path, why, ::geteuid()));
}

}  // namespace

void throw_directory_error(int error, const std::string& action, const std::string& path) {
  const bool exhausted = error == ENOSPC || error == EDQUOT || error == EMFILE || error == ENFILE || error == ENOMEM;
  throw Error(exhausted ? ErrorCode::resource : ErrorCode::io,
              fmt::format("cannot {} '{}' ({}); {}", action, path, std::generic_category().message(error),
                          exhausted ? "free space or descriptors there"
                                    : "set TMPDIR to a directory on a local disk that you may write to"));
}

std::string temporary_directory() {
  const std::string chosen = core::env::get("TMPDIR").value_or("/tmp");
  std::error_code failed;  // the current directory may be gone
  const std::string path = std::filesystem::absolute(chosen, failed).lexically_normal().string();
  return failed ? chosen : path;
}

UserDirectory::UserDirectory(const std::string& parent, const Deadline& deadline)
    : path_((std::filesystem::path(parent) / fmt::format("col-{}", ::geteuid())).string()) {
  do {
    while (!open()) {
      if (deadline.expired()) throw_directory_error(ENOENT, "open", path_);
    }
    lock(deadline);
    // The process that held the lock before may have removed the directory.
  } while (!still_there());
}

UserDirectory::~UserDirectory() {
  ::rmdir(path_.c_str());  // fails when a job is in it
  // In words: a child forked meanwhile by another thread shares the open file, and would keep the lock.
  ::flock(directory_.get(), LOCK_UN);
}

// False when it was removed right after it was made.
bool UserDirectory::open() {
  if (::mkdir(path_.c_str(), 0700) != 0 && errno != EEXIST) throw_directory_error(errno, "make the directory", path_);
  directory_.reset(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!directory_) {
    if (errno == ENOENT) return false;
    if (errno == ENOTDIR || errno == ELOOP) refuse(path_, "is no directory");
    throw_directory_error(errno, "open", path_);
  }
  struct stat status {};
  if (::fstat(directory_.get(), &status) != 0) throw_directory_error(errno, "look at", path_);
  if (status.st_uid != ::geteuid()) refuse(path_, fmt::format("belongs to user id {}", status.st_uid));
  if ((status.st_mode & 0777) != 0700) refuse(path_, fmt::format("has mode {:04o}", status.st_mode & 07777));
  return true;
}

void UserDirectory::lock(const Deadline& deadline) {
  for (Duration pause = kFirstPause; ::flock(directory_.get(), LOCK_EX | LOCK_NB) != 0;
       pause = std::min(pause * 2, kLongestPause)) {
    if (errno != EWOULDBLOCK && errno != EINTR) throw_directory_error(errno, "lock", path_);
    if (deadline.expired())
      throw Error(ErrorCode::timeout,
                  fmt::format("another process has held the lock of '{}' for {}; find it (it may be stopped) with "
                              "`fuser -v {}` and end it",
                              path_, core::format_duration(deadline.budget()), path_));
    core::sleep_for(std::min(pause, deadline.remaining()));
  }
}

bool UserDirectory::still_there() const {
  struct stat held {
  }, named{};
  return ::fstat(directory_.get(), &held) == 0 && ::lstat(path_.c_str(), &named) == 0 && held.st_dev == named.st_dev &&
         held.st_ino == named.st_ino;
}

}  // namespace col::group::adopt
