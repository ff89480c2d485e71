#include "launch/processes/descriptors.hpp"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <cerrno>

#include <fmt/format.h>

#include "common/exit_codes.hpp"
#include "launch/job/launch_error.hpp"

namespace col::launch {

using tools::UniqueFd;
using tools::exit_code::kLauncher;

namespace {

PipeEnds make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    throw LaunchError(kLauncher, "cannot create a pipe: {}; use fewer ranks", strerror(errno));
  }
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

}  // namespace

rlimit raise_open_files() {
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  const rlimit raised{before.rlim_max, before.rlim_max};
  ::setrlimit(RLIMIT_NOFILE, &raised);
  return before;
}

PipeEnds make_output_pipe() {
  PipeEnds pipe = make_pipe();
  ::fcntl(pipe.read.get(), F_SETFL, O_NONBLOCK);
  return pipe;
}

PipeEnds make_input_pipe() {
  PipeEnds pipe = make_pipe();
  ::fcntl(pipe.write.get(), F_SETFL, O_NONBLOCK);
  return pipe;
}

void ensure_standard_descriptors() {
  int fd = 0;
  while (fd >= 0 && fd <= STDERR_FILENO) fd = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  if (fd > STDERR_FILENO) ::close(fd);
  for (int standard = 0; standard <= STDERR_FILENO; ++standard) {
    const int flags = ::fcntl(standard, F_GETFD);
    if (flags >= 0 && (flags & FD_CLOEXEC) != 0) ::fcntl(standard, F_SETFD, flags & ~FD_CLOEXEC);
  }
}

}  // namespace col::launch
