#include "store/prepare_directory.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include <col/error.hpp>

#include "store/base/text.hpp"
#include "store/file_error.hpp"

namespace col::store {
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

}  // namespace

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

}  // namespace col::store
