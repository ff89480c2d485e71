#include "unit/store/child.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <exception>
#include <utility>

#include <col/job.hpp>

#include "support/fork.hpp"

namespace col::test {
namespace {

[[noreturn]] void run(const std::function<void()>& body, int report) {
  std::string text;
  try {
    body();
  } catch (const std::exception& error) {
    text = error.what();
    if (text.empty()) text = "an exception without words";
  }
  const ssize_t written = ::write(report, text.data(), text.size());
  ::_exit(written == static_cast<ssize_t>(text.size()) ? 0 : 1);
}

}  // namespace

Child::Child(const std::function<void()>& body) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("pipe2 failed");
  report_.reset(ends[0]);
  core::UniqueFd write_end(ends[1]);
  pid_ = fork_at_rest();
  if (pid_ < 0) throw std::runtime_error("fork failed");
  if (pid_ == 0) run(body, write_end.get());
}

Child::Child(Child&& other) noexcept : pid_(std::exchange(other.pid_, -1)), report_(std::move(other.report_)) {}

Child::~Child() {
  if (pid_ < 0) return;
  kill();
  ::waitpid(pid_, nullptr, 0);
}

void Child::kill() const {
  ::kill(pid_, SIGKILL);
}

std::string Child::outcome(Duration limit) {
  const Deadline deadline = Deadline::after(limit);
  std::string text;
  while (true) {
    pollfd file{report_.get(), POLLIN, 0};
    const auto ms = std::chrono::ceil<std::chrono::milliseconds>(deadline.remaining()).count();
    if (::poll(&file, 1, static_cast<int>(ms)) == 0) {
      kill();
      text = "still running";
      break;
    }
    std::array<char, 512> buffer;
    const ssize_t n = ::read(report_.get(), buffer.data(), buffer.size());
    if (n <= 0) break;
    text.append(buffer.data(), static_cast<std::size_t>(n));
  }
  int status = 0;
  ::waitpid(std::exchange(pid_, -1), &status, 0);
  if (text.empty() && WIFSIGNALED(status)) return "signal " + std::to_string(WTERMSIG(status));
  if (text.empty() && WEXITSTATUS(status) != 0) return "exit code " + std::to_string(WEXITSTATUS(status));
  return text;
}

}  // namespace col::test
