#include "common/ask_child.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <exception>
#include <system_error>

#include <col/job.hpp>

#include "common/unique_fd.hpp"
#include "core/clock/clock.hpp"

namespace col::tools {
namespace {

// The child's part. A byte before the answer tells that it is complete and may be empty.
[[noreturn]] void answer(const std::function<std::string()>& question, int out) {
  int code = EXIT_FAILURE;
  try {
    std::string text = "=" + question();
    code = ::write(out, text.data(), text.size()) == static_cast<ssize_t>(text.size()) ? EXIT_SUCCESS : EXIT_FAILURE;
  } catch (const std::exception&) {  // the caller sees that there is no answer
  }
  std::_Exit(code);
}

// What comes until the end, or the deadline.
std::string read_all(int in, Deadline deadline) {
  std::string text;
  std::array<char, 4096> part{};
  while (!deadline.expired()) {
    pollfd ready{in, POLLIN, 0};
    if (core::poll_for({&ready, 1}, deadline.remaining()) <= 0) continue;
    const ssize_t got = ::read(in, part.data(), part.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return text;
    text.append(part.data(), static_cast<std::size_t>(got));
  }
  return {};
}

}  // namespace

std::optional<std::string> ask_child(const std::function<std::string()>& question, Duration limit) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0)
    throw std::system_error(errno, std::generic_category(), "cannot make a pipe");
  const UniqueFd in(ends[0]);
  UniqueFd out(ends[1]);
  const pid_t child = ::fork();
  if (child < 0) throw std::system_error(errno, std::generic_category(), "cannot start a process");
  if (child == 0) answer(question, out.get());
  out.reset();
  const std::string text = read_all(in.get(), Deadline::after(limit));
  if (text.empty()) ::kill(child, SIGKILL);  // else it is about to end
  while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  if (text.empty()) return std::nullopt;
  return text.substr(1);
}

}  // namespace col::tools
