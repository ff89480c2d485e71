// A directory that goes when its maker does, however that ends.
#pragma once

#include <string>

#include <sys/types.h>

#include "common/unique_fd.hpp"

namespace col::colcheck {

class Scratch {
 public:
  // Makes the directory, for this user alone. Throws std::system_error.
  explicit Scratch(std::string path);
  // Removes it and all that is in it.
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  const std::string& path() const noexcept { return path_; }

 private:
  const std::string path_;
  tools::UniqueFd alive_;  // closed by the end of this process, too
  pid_t remover_ = -1;     // a process that waits for that
};

}  // namespace col::colcheck
