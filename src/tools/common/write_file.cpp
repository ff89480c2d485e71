#include "common/write_file.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <memory>
#include <system_error>

#include <fmt/format.h>

#include "common/exit_codes.hpp"
#include "common/unique_fd.hpp"
#include "core/clock/clock.hpp"

namespace col::tools {
namespace {

constexpr std::chrono::seconds kPatience{10};

[[noreturn]] void refuse(const std::string& path, int error) {
  throw WriteError(fmt::format("cannot write {}: {}; name a file that can be written", path,
                               std::generic_category().message(error)));
}

// Written to as it is: there is nothing to replace.
bool is_stream(const std::string& path) {
  struct stat status {};
  if (path.starts_with("/dev/")) return true;
  return ::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode);
}

tools::UniqueFd open_stream(const std::string& path) {
  tools::UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd) refuse(path, errno);
  return fd;
}

// Where the file is that `path` means: behind a symbolic link, even one that leads to nothing yet.
std::string target_of(const std::string& path) {
  const std::unique_ptr<char, decltype(&::free)> resolved(::realpath(path.c_str(), nullptr), &::free);
  if (resolved) return resolved.get();
  if (errno != ENOENT) refuse(path, errno);
  std::string link(4096, '\0');
  const ssize_t length = ::readlink(path.c_str(), link.data(), link.size());
  if (length < 0) return path;
  link.resize(static_cast<std::size_t>(length));
  return link.starts_with('/') ? link : path.substr(0, path.rfind('/') + 1) + link;
}

// A new file beside `target`; removed again unless it has been moved there.
class Draft {
 public:
  Draft(const std::string& path, const std::string& target) : path_(path), target_(target) {
    struct stat status {};
    if (::stat(target.c_str(), &status) == 0) {
      if (S_ISDIR(status.st_mode)) refuse(path, EISDIR);
      if (::access(target.c_str(), W_OK) != 0) refuse(path, errno);
    }
    constexpr int kAttempts = 100;
    for (int attempt = 0; !fd_ && attempt < kAttempts; ++attempt) {
      name_ = fmt::format("{}.{}.{}.tmp", target, ::getpid(), attempt);
      fd_ = tools::UniqueFd(::open(name_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
      if (!fd_ && errno != EEXIST) break;
    }
    if (!fd_) refuse(path, errno);
  }
  ~Draft() {
    if (!moved_) ::unlink(name_.c_str());
  }
  Draft(const Draft&) = delete;
  Draft& operator=(const Draft&) = delete;

  int fd() const { return fd_.get(); }
  void move_to_target() {
    // Some file systems say only now that there was no space.
    if (::fsync(fd_.get()) != 0 && errno != EINVAL) refuse(path_, errno);
    if (::rename(name_.c_str(), target_.c_str()) != 0) refuse(path_, errno);
    moved_ = true;
    fd_.reset();
  }

 private:
  std::string path_, target_, name_;
  tools::UniqueFd fd_;
  bool moved_ = false;
};

void write_all(const std::string& path, int fd, std::string_view content) {
  while (!content.empty()) {
    const ssize_t written = ::write(fd, content.data(), content.size());
    if (written >= 0) {
      content.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno == EAGAIN) {
      pollfd ready{fd, POLLOUT, 0};
      const int count = core::poll_for({&ready, 1}, kPatience);
      if (count == 0) refuse(path, ETIMEDOUT);
      if (count < 0 && errno != EINTR) refuse(path, errno);
    } else if (errno != EINTR) {
      refuse(path, errno);
    }
  }
}

}  // namespace

OutputClosed::OutputClosed(int error, bool reader_is_gone)
    : WriteError(fmt::format("cannot write to stdout: {}{}", std::generic_category().message(error),
                             reader_is_gone ? "" : "; send it to a place that takes it")),
      reader_is_gone_(reader_is_gone) {}

int OutputClosed::exit_code(int otherwise) const noexcept {
  return reader_is_gone_ ? exit_code::kOutputClosed : otherwise;
}

void print(std::string_view text) {
  ::signal(SIGPIPE, SIG_IGN);  // the reader may leave; that is an error with a text
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0) return;
  const int error = errno;
  struct stat status {};
  const bool is_hung_up =
      error == EIO && ::fstat(STDOUT_FILENO, &status) == 0 && S_ISCHR(status.st_mode);  // a terminal
  throw OutputClosed(error, error == EPIPE || is_hung_up);
}

void write_file(const std::string& path, std::string_view content) {
  if (is_stream(path)) {
    const tools::UniqueFd fd = open_stream(path);
    return write_all(path, fd.get(), content);
  }
  Draft draft(path, target_of(path));
  write_all(path, draft.fd(), content);
  draft.move_to_target();
}

void check_writable(const std::string& path) {
  if (!is_stream(path)) {
    const Draft draft(path, target_of(path));
    return;
  }
  // Not opened: the reader of a FIFO may come later, or take our closing for the end.
  if (::access(path.c_str(), W_OK) != 0) refuse(path, errno);
}

}  // namespace col::tools
