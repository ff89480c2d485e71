// Reading from a descriptor of the user's without ever blocking.
#pragma once

#include <cstdint>
#include <span>

#include "common/unique_fd.hpp"

namespace col::launch {

// The user's descriptor is shared with other processes, so its flags are left alone, as in Sink.
class InputSource {
 public:
  // Registers itself with the epoll (edge-triggered, data `event`) where it can be waited for. -1: is at its end.
  InputSource(int user_fd, int epoll_fd, std::uint64_t event);

  struct Outcome {
    std::size_t bytes = 0;
    enum class State { more, empty, ended } state = State::ended;  // empty: an event will tell when there is more
  };
  Outcome read(std::span<char> buffer);
  void close();

 private:
  tools::UniqueFd fd_;
  int epoll_fd_;
  bool may_block_ = false;
  bool is_socket_ = false;
};

}  // namespace col::launch
