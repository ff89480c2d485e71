// Writing to a descriptor of the user's without ever blocking for long.
#pragma once

#include <string_view>
#include <utility>

#include "common/unique_fd.hpp"

namespace col::launch {

// The user's descriptor is shared with other processes, so its flags are left alone: where it can be, it is opened
// again, non-blocking, for us alone; where not, it is asked for room before each small write.
class Sink {
 public:
  explicit Sink(int user_fd);
  explicit Sink(tools::UniqueFd own) : fd_(std::move(own)) {}  // non-blocking, where that means something

  struct Outcome {
    std::size_t written = 0;
    int error = 0;  // EAGAIN: full, wait until fd() is writable; EPIPE: the reader is gone; else what write said
  };
  Outcome write(std::string_view bytes);

  int fd() const noexcept { return fd_.get(); }  // to be polled

 private:
  tools::UniqueFd fd_;
  bool may_block_ = false;
  bool is_socket_ = false;
};

// True when both descriptors lead to the same place (`2>&1`): lines must then share one stream to stay whole.
bool same_file(int left, int right);

}  // namespace col::launch
