#include "launch/output/input_source.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include <fmt/format.h>

namespace col::launch {

InputSource::InputSource(int user_fd, int epoll_fd, std::uint64_t event) : epoll_fd_(epoll_fd) {
  struct stat info {};
  if (user_fd < 0 || ::fstat(user_fd, &info) != 0) return;
  if (S_ISFIFO(info.st_mode) || S_ISCHR(info.st_mode)) {
    const std::string path = fmt::format("/proc/self/fd/{}", user_fd);
    fd_.reset(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  }
  if (!fd_) {
    fd_.reset(::fcntl(user_fd, F_DUPFD_CLOEXEC, 3));
    is_socket_ = S_ISSOCK(info.st_mode);
    may_block_ = !is_socket_ && !S_ISREG(info.st_mode) && !S_ISBLK(info.st_mode);
  }
  epoll_event interest{};
  interest.events = EPOLLIN | EPOLLET;
  interest.data.u64 = event;
  // Refuses files and /dev/null, which always have something to say, if only that they are at their end.
  ::epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, fd_.get(), &interest);
}

InputSource::Outcome InputSource::read(std::span<char> buffer) {
  using enum Outcome::State;
  if (!fd_) return {0, ended};
  if (may_block_) {
    pollfd some{fd_.get(), POLLIN, 0};
    if (::poll(&some, 1, 0) == 0) return {0, empty};
  }
  const ssize_t length = is_socket_ ? ::recv(fd_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT)
                                    : ::read(fd_.get(), buffer.data(), buffer.size());
  if (length > 0) return {static_cast<std::size_t>(length), more};
  if (length < 0 && errno == EAGAIN) return {0, empty};
  if (length < 0 && errno == EINTR) return {0, more};
  return {0, ended};  // a terminal that was hung up reports an error
}

void InputSource::close() {
  if (fd_) ::epoll_ctl(epoll_fd_, EPOLL_CTL_DEL, fd_.get(), nullptr);
  fd_.reset();
}

}  // namespace col::launch
