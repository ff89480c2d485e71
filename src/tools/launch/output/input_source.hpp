// Reads from a descriptor of the user without ever blocking.
#pragma once

#include <cstdint>
#include <span>

#include "common/unique_fd.hpp"

namespace col::launch {

// Other processes share the user's descriptor, so its flags are not changed. This is the same in Sink.
class InputSource {
 public:
  // Registers itself with the epoll (edge-triggered, data `event`) if it can be waited for. -1: it is at its end.
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
