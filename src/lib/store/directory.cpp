#include "store/directory.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <memory>

#include <fmt/format.h>

#include "core/blocked_signal.hpp"
#include "store/file_error.hpp"
#include "store/prepare_directory.hpp"

namespace col::store {
namespace {

constexpr int kRetriesStale = 10;  // of a read whose file a network file system replaced and forgot

int open_file(int directory, const char* name, int flags) noexcept {
  int fd;
  do fd = ::openat(directory, name, flags | O_CLOEXEC | O_NOFOLLOW, 0600);
  while (fd < 0 && errno == EINTR);
  return fd;
}

// The rest of the file; errno in `error` on failure.
std::string read_all(int fd, int& error) {
  struct stat status {};
  error = ::fstat(fd, &status) == 0 ? 0 : errno;
  std::string content(error == 0 ? static_cast<std::size_t>(status.st_size) : 0, '\0');
  std::size_t done = 0;
  while (error == 0 && done < content.size()) {
    const ssize_t n = ::read(fd, content.data() + done, content.size() - done);
    if (n > 0) {
      done += static_cast<std::size_t>(n);
    } else if (n == 0) {
      error = EIO;  // files in keys/ never shrink: somebody else wrote to it
    } else if (errno != EINTR) {
      error = errno;
    }
  }
  return content;
}

// Returns errno, 0 when all is written.
int write_all(int fd, std::string_view content) noexcept {
  const core::BlockedSignal too_long(SIGXFSZ);  // EFBIG says it
  while (!content.empty()) {
    const ssize_t n = ::write(fd, content.data(), content.size());
    if (n >= 0) {
      content.remove_prefix(static_cast<std::size_t>(n));
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

// Makes `temporary` the file at `place`, atomically. Returns errno.
//
// A file that is there is exchanged and removed, not renamed over: that makes ext4 write the new one to disk at once
// (auto_da_alloc), which takes a millisecond for a counter of one digit.
int publish(int root, const std::string& temporary, const std::string& place) noexcept {
  if (::renameat2(root, temporary.c_str(), root, place.c_str(), RENAME_EXCHANGE) == 0) {
    ::unlinkat(root, temporary.c_str(), 0);
    return 0;
  }
  // No such file yet, or a file system that cannot exchange.
  return ::renameat(root, temporary.c_str(), root, place.c_str()) == 0 ? 0 : errno;
}

struct CloseDir {
  void operator()(DIR* dir) const noexcept { ::closedir(dir); }
};

}  // namespace

Directory::Directory(const std::string& path) : path_(absolute_path(path)), root_(prepare_directory(path_)) {}

void Directory::fail(int error, std::string_view action) const {
  throw_file_error(error, action, path_);
}

std::optional<std::string> Directory::read(const std::string& name) const {
  int error = ESTALE;
  for (int attempt = 0; attempt < kRetriesStale && error == ESTALE; ++attempt) {
    core::UniqueFd file(open_file(root_.get(), ("keys/" + name).c_str(), O_RDONLY));
    if (!file && errno == ENOENT) {
      // Is the key absent, or is the directory? Opening it also makes a network file system look again.
      const core::UniqueFd keys(open_file(root_.get(), "keys", O_RDONLY | O_DIRECTORY));
      if (!keys) fail(errno, "look up a key");
      file = core::UniqueFd(open_file(keys.get(), name.c_str(), O_RDONLY));
      if (!file && errno == ENOENT) return std::nullopt;
    }
    if (!file) {
      error = errno;
      continue;
    }
    std::string content = read_all(file.get(), error);
    if (error == 0) return content;
  }
  fail(error, "read a key");
}

core::UniqueFd Directory::create_temporary(std::string& name) const {
  while (true) {
    // Random, so that hosts which share the directory but not their pids cannot meet.
    std::uint64_t random = 0;
    if (::getrandom(&random, sizeof random, 0) != sizeof random) fail(errno, "get a random file name");
    name = fmt::format("tmp/{}.{:016x}", ::getpid(), random);
    core::UniqueFd file(open_file(root_.get(), name.c_str(), O_WRONLY | O_CREAT | O_EXCL));
    if (file) return file;
    if (errno != EEXIST) fail(errno, "create a file");
  }
}

void Directory::write(const std::string& name, std::string_view content) const {
  std::string temporary;
  core::UniqueFd file = create_temporary(temporary);
  int error = write_all(file.get(), content);
  // Network file systems report a full disk only here.
  if (::close(file.release()) != 0 && error == 0 && errno != EINTR) error = errno;
  if (error == 0) error = publish(root_.get(), temporary, "keys/" + name);
  if (error == 0) return;
  ::unlinkat(root_.get(), temporary.c_str(), 0);
  fail(error, "write a key");
}

bool Directory::remove(const std::string& name) const {
  if (::unlinkat(root_.get(), ("keys/" + name).c_str(), 0) == 0) return true;
  if (errno != ENOENT) fail(errno, "erase a key");
  if (::faccessat(root_.get(), "keys", F_OK, 0) != 0) fail(errno, "erase a key");
  return false;
}

std::vector<std::string> Directory::names() const {
  core::UniqueFd keys(open_file(root_.get(), "keys", O_RDONLY | O_DIRECTORY));
  if (!keys) fail(errno, "list the keys");
  const std::unique_ptr<DIR, CloseDir> listing(::fdopendir(keys.get()));
  if (!listing) fail(errno, "list the keys");
  keys.release();  // closed with the listing
  std::vector<std::string> names;
  while (true) {
    errno = 0;
    const dirent* entry = ::readdir(listing.get());
    if (entry == nullptr) break;
    names.emplace_back(entry->d_name);
  }
  if (errno != 0) fail(errno, "list the keys");
  return names;
}

core::UniqueFd Directory::open_lock() const {
  core::UniqueFd lock(open_file(root_.get(), "lock", O_RDWR | O_CREAT));
  if (!lock) fail(errno, "open the lock file");
  return lock;
}

}  // namespace col::store
