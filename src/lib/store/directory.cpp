#include "store/directory.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <system_error>

#include <fmt/format.h>

#include <col/error.hpp>

#include "core/blocked_signal.hpp"
#include "store/base/text.hpp"

namespace col::store {
namespace {

struct Verdict {
  ErrorCode code;
  std::string_view advice;
};

Verdict verdict(int error) noexcept {
  switch (error) {
    case ENOSPC:
    case EDQUOT:
      return {ErrorCode::resource, "free space there, or set COL_STORE to a directory on a file system with space"};
    case EFBIG:
      return {ErrorCode::resource, "raise the file size limit (ulimit -f)"};
    case EMFILE:
      return {ErrorCode::resource, "raise the limit of open files (ulimit -n)"};
    case ENFILE:
      return {ErrorCode::resource, "close files on this host, or raise fs.file-max"};
    case ENOMEM:
    case ENOBUFS:
      return {ErrorCode::resource, "free memory on this host"};
    case ENOENT:
    case ESTALE:
      return {ErrorCode::io,
              "it cannot be created there or was removed while in use; set COL_STORE to a directory that lives as long "
              "as the job"};
    case ENOLCK:
    case ENOSYS:
    case EOPNOTSUPP:
      return {ErrorCode::io, "set COL_STORE to a directory on a file system with file locks"};
    default:
      return {ErrorCode::io, "set COL_STORE to a directory that this user can write on every host of the job"};
  }
}

}  // namespace

void throw_file_error(int error, std::string_view action, std::string_view directory) {
  const auto [code, advice] = verdict(error);
  throw Error(code, fmt::format("cannot {} in store directory '{}': {}; {}", action, printable(directory),
                                std::generic_category().message(error), advice));
}

// ---- Finding and creating it ----------------------------------------------------------------------------------------

namespace {

constexpr mode_t kPrivate = 0700;
constexpr int kHandle = O_PATH | O_DIRECTORY | O_CLOEXEC;

[[noreturn]] void throw_foreign(const std::string& path, std::string_view what, uid_t owner) {
  throw Error(ErrorCode::io, fmt::format("store directory '{}' {} user id {}, not to this one ({}); set COL_STORE to a "
                                         "directory of your own",
                                         printable(path), what, owner, ::geteuid()));
}

void create(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
  if (error) throw_file_error(error.value(), "create the parent", path);
  if (::mkdir(path.c_str(), kPrivate) != 0 && errno != EEXIST) throw_file_error(errno, "create the directory", path);
}

// Opens the directory at `path`. Links of root are trusted, as the administrator lays out scratch directories with
// them; a link of anybody else could lead a job's values to where that user reads them.
core::UniqueFd open_root(const std::string& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) {
    if (errno != ENOENT) throw_file_error(errno, "look", path);
    create(path);
    if (::lstat(path.c_str(), &status) != 0) throw_file_error(errno, "look", path);
  }
  const bool link = S_ISLNK(status.st_mode);
  if (link && status.st_uid != ::geteuid() && status.st_uid != 0)
    throw_foreign(path, "is a symbolic link that belongs to", status.st_uid);
  // Without a link no other user can put one there now: that takes the right to write in the parent, where the
  // directory or its sticky bit stands against it.
  core::UniqueFd root(::open(path.c_str(), kHandle | (link ? 0 : O_NOFOLLOW)));
  if (!root) throw_file_error(errno, "open the directory", path);
  return root;
}

void prepare_part(int root, const char* name, const std::string& path, uid_t root_owner) {
  if (::mkdirat(root, name, kPrivate) != 0 && errno != EEXIST) throw_file_error(errno, "create a directory", path);
  const core::UniqueFd part(::openat(root, name, kHandle | O_NOFOLLOW));
  struct stat status {};
  if (!part || ::fstat(part.get(), &status) != 0) throw_file_error(errno, "open a directory", path);
  // A file server may have given what this user created to another one (root_squash), the same as the root's then.
  if (status.st_uid != ::geteuid() && status.st_uid != root_owner)
    throw_foreign(path, "holds keys that belong to", status.st_uid);
  if (::faccessat(root, name, R_OK | W_OK | X_OK, AT_EACCESS) != 0) throw_file_error(errno, "write", path);
}

// `path` made absolute, without a slash at its end. Throws invalid_argument when it is empty or holds a zero byte.
std::string absolute_path(const std::string& path) {
  if (path.empty() || path.find('\0') != std::string::npos) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("'{}' is no directory for a store; pass the path of a directory, or one to create",
                            printable(path)));
  }
  std::error_code error;
  std::string absolute = std::filesystem::absolute(path, error).string();
  if (error) throw_file_error(error.value(), "find the current directory", path);
  // lstat of "dir/" or "dir/." would follow a link at "dir".
  while (absolute.ends_with('/') || absolute.ends_with("/.")) absolute.pop_back();
  return absolute.empty() ? "/" : absolute;
}

// Finds or creates the directory of a FileStore and checks that it can be used and trusted. Returns a descriptor
// (O_PATH) of it; it then has keys/, tmp/ and lock.
core::UniqueFd prepare_directory(const std::string& path) {
  core::UniqueFd root = open_root(path);
  struct stat status {};
  if (::fstat(root.get(), &status) != 0) throw_file_error(errno, "look", path);
  prepare_part(root.get(), "keys", path, status.st_uid);
  prepare_part(root.get(), "tmp", path, status.st_uid);
  const core::UniqueFd lock(::openat(root.get(), "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!lock) throw_file_error(errno, "create the lock file", path);
  return root;
}

}  // namespace

// ---- The files in it ------------------------------------------------------------------------------------------------

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
