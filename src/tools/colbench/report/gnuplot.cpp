#include "colbench/report/gnuplot.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <optional>
#include <system_error>
#include <thread>

#include <fmt/format.h>

#include "common/command_line.hpp"
#include "common/text.hpp"
#include "common/unique_fd.hpp"
#include "common/write_file.hpp"
#include "launch/job/launch_error.hpp"
#include "launch/processes/program.hpp"

namespace col::colbench {
namespace {

[[noreturn]] void throw_errno(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

// In memory, so that the child never waits for us to read or write, and nothing is left behind.
tools::UniqueFd memory_file(const char* name) {
  tools::UniqueFd file(::memfd_create(name, MFD_CLOEXEC));
  if (!file) throw_errno("memfd_create");
  return file;
}

void fill(const tools::UniqueFd& file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(file.get(), text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) throw_errno("write");
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  if (::lseek(file.get(), 0, SEEK_SET) != 0) throw_errno("lseek");
}

std::string content_of(const tools::UniqueFd& file) {
  struct stat facts {};
  if (::fstat(file.get(), &facts) != 0) throw_errno("fstat");
  std::string text(static_cast<std::size_t>(facts.st_size), '\0');
  std::size_t length = 0;
  while (length < text.size()) {
    const ssize_t got = ::pread(file.get(), text.data() + length, text.size() - length, static_cast<off_t>(length));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) throw_errno("pread");
    length += static_cast<std::size_t>(got);
  }
  return text;
}

// A child that is killed, if it still runs, and reaped by the destructor.
class Child {
 public:
  Child(const std::string& program, int input, int output, int errors) {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawnattr_init(&attributes);
    ::posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions, errors, STDERR_FILENO);
    sigset_t none, all;
    ::sigemptyset(&none);
    ::sigfillset(&all);
    ::posix_spawnattr_setsigmask(&attributes, &none);
    ::posix_spawnattr_setsigdefault(&attributes, &all);
    ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    // -d: no settings of the user or of the machine.
    std::string name = "gnuplot", settings = "-d";
    char* const arguments[] = {name.data(), settings.data(), nullptr};
    const int error = ::posix_spawn(&pid_, program.c_str(), &actions, &attributes, arguments, environ);
    ::posix_spawnattr_destroy(&attributes);
    ::posix_spawn_file_actions_destroy(&actions);
    if (error != 0) throw std::system_error(error, std::generic_category(), "cannot start gnuplot");
  }
  ~Child() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    reap();
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // Whether it ended before the deadline, and how.
  bool wait(std::chrono::steady_clock::time_point deadline, int& status) {
    // A pidfd, which would tell at once, may be refused.
    while (::waitpid(pid_, &status, WNOHANG) == 0) {
      if (std::chrono::steady_clock::now() >= deadline) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    pid_ = -1;
    return true;
  }

 private:
  int reap() {
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
    return status;
  }

  pid_t pid_ = -1;
};

// Nothing if it is not installed.
std::optional<std::string> path_of_gnuplot() {
  try {
    return launch::resolve_program("gnuplot");
  } catch (const launch::LaunchError&) {
    return std::nullopt;
  }
}

}  // namespace

bool has_gnuplot() {
  return path_of_gnuplot().has_value();
}

std::string no_gnuplot_text() {
  return "there is no gnuplot on PATH; install it (Debian and Ubuntu: apt-get install gnuplot-nox)";
}

std::string run_gnuplot(std::string_view script, std::chrono::milliseconds deadline) {
  const std::optional<std::string> program = path_of_gnuplot();
  if (!program) throw tools::UsageError(no_gnuplot_text());
  const tools::UniqueFd input = memory_file("plot"), output = memory_file("drawing"), errors = memory_file("messages");
  fill(input, script);
  int status = 0;
  {
    Child child(*program, input.get(), output.get(), errors.get());
    if (!child.wait(std::chrono::steady_clock::now() + deadline, status)) {
      throw tools::WriteError(
          fmt::format("gnuplot has not finished after {} s", static_cast<double>(deadline.count()) / 1000));
    }
  }
  std::string drawing = content_of(output);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0 || drawing.empty()) {
    const std::string message = tools::one_line(content_of(errors));
    throw tools::WriteError(fmt::format("gnuplot failed: {}", message.empty() ? "it does not say why" : message));
  }
  return drawing;
}

}  // namespace col::colbench
