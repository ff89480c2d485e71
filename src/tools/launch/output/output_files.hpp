// Opens the files that the ranks' output goes to.
#pragma once

#include <sys/types.h>

#include <string>
#include <unordered_set>

#include "common/unique_fd.hpp"

namespace col::launch {

class OutputFiles {
 public:
  struct File {
    tools::UniqueFd fd;  // appends; non-blocking, which matters only for a named pipe
    off_t size = 0;      // when it was opened
  };
  // Creates the file and its directories if they are missing. A file from an earlier job is emptied when it is first
  // opened, unless `is_restart`. Throws LaunchError (125).
  File open(const std::string& path, bool is_restart);

 private:
  std::unordered_set<std::string> opened_;
};

}  // namespace col::launch
