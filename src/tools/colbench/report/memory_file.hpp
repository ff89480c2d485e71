// A text that processes share, without a name and gone with the last of them. No process waits for another one to read
// or write it.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <string>
#include <string_view>
#include <system_error>

#include "common/unique_fd.hpp"

namespace col::colbench {

class MemoryFile {
 public:
  // `flags`: MFD_CLOEXEC, or 0 if programs that this process starts shall have it. Throws std::system_error.
  explicit MemoryFile(const char* name, unsigned flags) : file_(::memfd_create(name, flags)) {
    if (!file_) throw std::system_error(errno, std::generic_category(), "cannot make a file in memory");
  }
  explicit MemoryFile(int inherited) : file_(inherited) {}

  int fd() const { return file_.get(); }

  // Replaces the text. If there is no room, the reader sees that it is cut short.
  void write(std::string_view text) const {
    if (::ftruncate(fd(), 0) != 0) return;
    for (std::size_t at = 0; at < text.size();) {
      const ssize_t done = ::pwrite(fd(), text.data() + at, text.size() - at, static_cast<off_t>(at));
      if (done < 0 && errno == EINTR) continue;
      if (done <= 0) return;
      at += static_cast<std::size_t>(done);
    }
  }

  std::string read() const {
    std::string text(static_cast<std::size_t>(std::max<off_t>(0, ::lseek(fd(), 0, SEEK_END))), '\0');
    const ssize_t size = ::pread(fd(), text.data(), text.size(), 0);
    text.resize(static_cast<std::size_t>(std::max<ssize_t>(0, size)));
    return text;
  }

 private:
  tools::UniqueFd file_;
};

}  // namespace col::colbench
