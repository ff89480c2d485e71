// Files that processes share for a moment, to map them.
#pragma once

#include <string>

#include "core/unique_fd.hpp"

namespace col::shm_backend {

// Memory as a file without a name. No descriptor if the kernel has none to give.
core::UniqueFd make_memfd();
// After this, nobody can change the size of the file, so no process that maps it can meet a hole.
void seal(int fd) noexcept;

// A file of mode 0600 with a name that nobody can guess. The destructor removes it.
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

// Opens `path` for reading and writing if it is a regular file of this user. Otherwise there is no descriptor, and
// errno says why. It does not touch anything else at that path: opening a device can have effects.
core::UniqueFd open_regular_file(const std::string& path);

}  // namespace col::shm_backend
