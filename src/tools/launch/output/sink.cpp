#include "launch/output/sink.hpp"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include <fmt/format.h>

namespace col::launch {
namespace {

constexpr std::size_t kBigWrite = 256 * 1024;

}  // namespace

Sink::Sink(int user_fd) {
  struct stat info {};
  const bool known = ::fstat(user_fd, &info) == 0;
  const bool is_file = known && (S_ISREG(info.st_mode) || S_ISBLK(info.st_mode));
  if (known && (S_ISFIFO(info.st_mode) || S_ISCHR(info.st_mode))) {
    const std::string path = fmt::format("/proc/self/fd/{}", user_fd);
    fd_.reset(::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  }
  if (fd_) return;
  fd_.reset(::fcntl(user_fd, F_DUPFD_CLOEXEC, 3));
  is_socket_ = known && S_ISSOCK(info.st_mode);
  may_block_ = !is_file && !is_socket_;  // a file is as fast as its disk, and has no use for polling
}

Sink::Outcome Sink::write(std::string_view bytes) {
  Outcome outcome;
  while (outcome.written < bytes.size()) {
    std::size_t length = std::min(bytes.size() - outcome.written, kBigWrite);
    if (may_block_) {
      pollfd room{fd_.get(), POLLOUT, 0};
      if (::poll(&room, 1, 0) == 0) return {outcome.written, EAGAIN};
      length = std::min<std::size_t>(length, PIPE_BUF);
    }
    const char* start = bytes.data() + outcome.written;
    const ssize_t written =
        is_socket_ ? ::send(fd_.get(), start, length, MSG_DONTWAIT | MSG_NOSIGNAL) : ::write(fd_.get(), start, length);
    if (written >= 0) {
      outcome.written += static_cast<std::size_t>(written);
    } else if (errno != EINTR) {
      return {outcome.written, errno};
    }
  }
  return outcome;
}

bool same_file(int left, int right) {
  struct stat one {};
  struct stat other {};
  return ::fstat(left, &one) == 0 && ::fstat(right, &other) == 0 && one.st_dev == other.st_dev &&
         one.st_ino == other.st_ino;
}

}  // namespace col::launch
