// One thread waits for everything that happens. Each part of the launcher has its own descriptors watched, and handles
// their events itself, as the handles of libuv do.
#pragma once

#include <sys/epoll.h>
#include <sys/resource.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <unordered_map>

#include <col/types.hpp>

#include "common/unique_fd.hpp"

namespace col::launch {

class EventSource;

class Events {
 public:
  Events();  // throws LaunchError (125)
  Events(const Events&) = delete;
  Events& operator=(const Events&) = delete;

  // Waits until something happens, for `at_most`, and has it handled, in the order in which it happened.
  void serve(Duration at_most);
  int fd() const noexcept { return epoll_.get(); }

 private:
  friend class EventSource;

  tools::UniqueFd epoll_;
  std::unordered_map<std::uint32_t, EventSource*> sources_;
  std::uint32_t next_ = 0;  // numbers are not used again: an event of one that is gone concerns nobody
};

// The descriptors of one part. Events concern nobody any more when it is gone.
class EventSource {
 public:
  using Handler = std::function<void(std::size_t index)>;  // the index with which the descriptor was added
  EventSource(Events& events, Handler handler);
  ~EventSource();
  EventSource(const EventSource&) = delete;
  EventSource& operator=(const EventSource&) = delete;

  // `what`: EPOLLIN and so on. Returns false, and sets errno, if the system refuses it.
  bool add(int fd, std::uint32_t what, std::size_t index = 0) noexcept;
  // The same for EPOLLIN. Throws LaunchError (125) if the system refuses it.
  void add_readable(int fd, std::size_t index = 0);
  // A descriptor of which there is a copy has events after its close, too.
  void remove(int fd) noexcept;

 private:
  friend class Events;

  Events& events_;
  Handler handler_;
  std::uint32_t number_;
};

// Takes what has happened at an epoll descriptor, in that order; if that is nothing yet, waits for it. Empty after
// `at_most`, or for no reason.
std::span<const epoll_event> next_events(int epoll_fd, std::span<epoll_event> room, Duration at_most) noexcept;

// Raises this process's limit of open files as far as allowed, and returns the old limit.
rlimit raise_open_files();

struct PipeEnds {
  tools::UniqueFd read, write;
};
// A pipe for a job; so is the next. They throw LaunchError (125) if the system has no more. The rank writes to one end;
// the other end is ours, and non-blocking. The pipe has the usual capacity: larger ones were not faster, and the system
// gives each user only a limited amount.
PipeEnds make_output_pipe();
// We write to one end without blocking, and a rank reads at the other.
PipeEnds make_input_pipe();

// Opens /dev/null for each of the descriptors 0 to 2 that is closed. Otherwise other files would get these numbers.
void ensure_standard_descriptors();

}  // namespace col::launch
