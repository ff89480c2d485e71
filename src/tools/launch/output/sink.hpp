// Where output goes: descriptors of the user, and files.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "common/unique_fd.hpp"
#include "launch/job/job_spec.hpp"

namespace col::launch {

// Writes to a descriptor of the user without ever blocking for long.
//
// Other processes share the user's descriptor, so its flags are not changed. If possible, the file is opened again,
// non-blocking, only for us. Otherwise the descriptor is asked for room before each small write.
class Sink {
 public:
  explicit Sink(int user_fd);
  explicit Sink(tools::UniqueFd own) : fd_(std::move(own)) {}  // non-blocking, where that has a meaning

  struct Outcome {
    std::size_t written = 0;
    // EAGAIN: full, wait until fd() is writable; EPIPE: the reader is gone; otherwise the error of write
    int error = 0;
  };
  Outcome write(std::string_view bytes);

  int fd() const noexcept { return fd_.get(); }  // to be polled

 private:
  tools::UniqueFd fd_;
  bool may_block_ = false;
  bool is_socket_ = false;
};

// True if both descriptors lead to the same place (`2>&1`). Lines must then share one stream to stay whole.
bool same_file(int left, int right);

// A prompt is for a person at a terminal; a file, and a program behind a pipe, get whole lines.
Unfinished unfinished_at(int fd);

// Opens the files that the ranks' output goes to.
class OutputFiles {
 public:
  struct File {
    tools::UniqueFd fd;  // appends; non-blocking, which matters only for a named pipe
    off_t size = 0;      // when it was opened
  };
  // Creates the file and its directories if they are missing. A file from an earlier job is emptied when it is first
  // opened, unless `is_restart`. Throws LaunchError (125).
  File open(const std::string& path, bool is_restart);
  // The first directory that open() created; empty if there is none.
  const std::string& made_folder() const noexcept { return made_folder_; }

 private:
  std::string made_folder_;
  std::unordered_set<std::string> opened_;
};

}  // namespace col::launch
