#include "launch/output/sink.hpp"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include <fmt/format.h>

#include "common/exit_codes.hpp"
#include "core/clock/clock.hpp"
#include "launch/job/launch_error.hpp"

namespace col::launch {
namespace {

constexpr std::size_t kBigWrite = 256 * 1024;

using tools::exit_code::kLauncher;

const char* advice(int error) {
  switch (error) {
    case ENXIO:
      return "nobody reads this named pipe; start its reader first";
    case EMFILE:
    case ENFILE:
      return "raise the limit of open files (ulimit -n) or use fewer ranks";
    case EISDIR:
      return "name a file in it";
    default:
      return "name another place for the output";
  }
}

// Returns the first one that was not there; empty if all were.
std::string make_directories_of(const std::string& path) {
  std::string made;
  for (std::size_t slash = path.find('/', 1); slash != std::string::npos; slash = path.find('/', slash + 1)) {
    const std::string directory = path.substr(0, slash);
    if (::mkdir(directory.c_str(), 0777) == 0) {
      if (made.empty()) made = directory;
      continue;
    }
    if (errno == EEXIST) continue;  // a file of that name: open() will say it
    const int error = errno;
    struct stat info {};
    if (::stat(directory.c_str(), &info) == 0) continue;  // a read-only file system says EROFS for what is there, too
    throw LaunchError(kLauncher, "cannot create the directory '{}' for the output file '{}': {}; {}", directory, path,
                      strerror(error), advice(error));
  }
  return made;
}

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
      if (core::poll_for({&room, 1}, Duration::zero()) == 0) return {outcome.written, EAGAIN};
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

Unfinished unfinished_at(int fd) {
  return ::isatty(fd) == 1 ? Unfinished::shown : Unfinished::held;
}

OutputFiles::File OutputFiles::open(const std::string& path, bool is_restart) {
  if (std::string made = make_directories_of(path); made_folder_.empty()) made_folder_ = std::move(made);
  const bool is_first = opened_.insert(path).second;
  const int begin_anew = is_first && !is_restart ? O_TRUNC : 0;
  // O_NONBLOCK: a named pipe without a reader is to be an error, not a halt.
  File file{tools::UniqueFd(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | begin_anew, 0666))};
  struct stat info {};
  if (!file.fd || ::fstat(file.fd.get(), &info) != 0) {
    const int error = errno;
    throw LaunchError(kLauncher, "cannot open the output file '{}': {}; {}", path, strerror(error), advice(error));
  }
  file.size = info.st_size;
  return file;
}

}  // namespace col::launch
