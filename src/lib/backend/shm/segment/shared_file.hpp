// Files that processes share for a moment, to map them; and their pages, which are taken before they are used: a hole
// that cannot be filled later would end the process with SIGBUS.
#pragma once

#include <cstddef>
#include <optional>
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

// ---- Pages

// Each returns nothing on success, otherwise the reason of the failure in words.

// Whether ulimit -f allows a file of that size.
bool allows_file(std::size_t bytes) noexcept;
// Gives the empty file `fd` a size of `bytes` bytes, and takes the first `reserved` of them now.
std::optional<std::string> make_file(int fd, std::size_t bytes, std::size_t reserved);
// Takes the pages of a mapping that [begin, begin + bytes) touches, on the NUMA node of the calling thread. Requires:
// can_populate().
std::optional<std::string> populate(std::byte* begin, std::size_t bytes);

// Whether a mapping's pages can be taken with an error if there is no room (Linux 5.14). Otherwise they must be
// reserved in the file.
bool can_populate() noexcept;

}  // namespace col::shm_backend
