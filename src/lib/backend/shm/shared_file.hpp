// Files that processes share for a moment: to map them.
#pragma once

#include <string>

#include "core/unique_fd.hpp"

namespace col::shm_backend {

// Memory as a file without a name. No descriptor when the kernel has none to give.
core::UniqueFd make_memfd();
// Nobody can change its size any more, so that nobody who maps it can meet a hole.
void seal(int fd) noexcept;

// A file of mode 0600 with a name that nobody can guess, removed at the end of this object's life.
class SharedFile {
 public:
  // Throws io or resource when it cannot be created in `directory`.
  explicit SharedFile(const std::string& directory);
  ~SharedFile();
  SharedFile(const SharedFile&) = delete;
  SharedFile& operator=(const SharedFile&) = delete;

  const std::string& path() const noexcept { return path_; }
  int fd() const noexcept { return fd_.get(); }

 private:
  std::string path_;
  core::UniqueFd fd_;
};

// Opens `path` for reading and writing if it is a regular file of this user; else there is no descriptor, and errno
// says why. Whatever else lies there is not touched: opening a device can do things.
core::UniqueFd open_regular_file(const std::string& path);

}  // namespace col::shm_backend
