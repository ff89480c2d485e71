#include "launch/processes/program.hpp"

#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "common/exit_codes.hpp"
#include "launch/job/launch_error.hpp"

namespace col::launch {
namespace {

constexpr const char* kDefaultPath = "/usr/local/bin:/usr/bin:/bin";

// 0 when `path` is a file that we may execute, else an errno value.
int check_executable(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return errno;
  if (S_ISDIR(info.st_mode)) return EISDIR;
  return ::access(path.c_str(), X_OK) == 0 ? 0 : errno;
}

// For a file that is no program by itself, and would be one for Python.
std::string python_advice(const std::string& path) {
  return path.ends_with(".py") ? fmt::format("a script of Python needs its interpreter: colrun python3 {}", path) : "";
}

// The kernel takes the carriage return for a part of the interpreter's name.
bool has_crlf(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string line;
  return std::getline(file, line) && line.ends_with('\r');
}

[[noreturn]] void refuse(const std::string& name, const std::string& path, int error) {
  using namespace tools::exit_code;
  if (error == EISDIR)
    throw LaunchError(kNotExecutable, "cannot run '{}': it is a directory; name a program in it", path);
  if (error == EACCES) {
    const std::string advice = python_advice(path);
    throw LaunchError(kNotExecutable, "cannot run '{}': permission denied; {}", path,
                      advice.empty() ? "make it executable (chmod +x)" : advice);
  }
  if (error == ENOENT || error == ENOTDIR) {
    throw LaunchError(kNotFound, "cannot find the program '{}'; check the path", name);
  }
  throw LaunchError(kNotExecutable, "cannot run '{}': {}", path, strerror(error));
}

void reset_signals(std::span<const int> changed) {
  struct sigaction plain {};
  plain.sa_handler = SIG_DFL;
  for (const int signal : changed) ::sigaction(signal, &plain, nullptr);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

void close_all_but(std::span<const int> keep) {
  unsigned first = STDERR_FILENO + 1;
  for (int fd : keep) {
    if (static_cast<unsigned>(fd) > first) ::close_range(first, static_cast<unsigned>(fd) - 1, 0);
    first = static_cast<unsigned>(fd) + 1;
  }
  ::close_range(first, ~0U, 0);
}

// In the child, which shares our memory: writes nothing but its own stack and `exec_error`.
[[noreturn, gnu::noinline]] void become(const ChildPlan& plan, pid_t parent, volatile int& exec_error) {
  if (plan.descriptors.controlling_terminal) {
    ::setsid();
    ::ioctl(plan.descriptors.stdout_fd, TIOCSCTTY, 0);
  } else {
    ::setpgid(0, 0);
  }
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(0);  // the parent died before the line above
  ::dup2(plan.descriptors.stdin_fd, STDIN_FILENO);
  ::dup2(plan.descriptors.stdout_fd, STDOUT_FILENO);
  ::dup2(plan.descriptors.stderr_fd, STDERR_FILENO);
  close_all_but(plan.keep_fds);
  if (plan.pmi_fd >= 0) ::fcntl(plan.pmi_fd, F_SETFD, 0);
  ::setrlimit(RLIMIT_NOFILE, &plan.open_files);
  constexpr rlimit kNone{0, 0};
  if (!plan.core_dumps) ::setrlimit(RLIMIT_CORE, &kNone);
  if (plan.cpus != nullptr) plan.cpus->apply();
  reset_signals(plan.changed_signals);
  ::execve(plan.path, plan.arguments, plan.environment);
  exec_error = errno;
  ::_exit(127);
}

}  // namespace

std::string resolve_program(const std::string& name) {
  if (name.find('/') != std::string::npos) {
    if (const int error = check_executable(name); error != 0) refuse(name, name, error);
    return name;
  }
  const char* variable = std::getenv("PATH");
  std::string_view folders = variable != nullptr ? variable : kDefaultPath;
  std::string unusable;  // the first file of that name that we may not execute
  while (!name.empty()) {
    const std::size_t colon = folders.find(':');
    const std::string_view folder = folders.substr(0, colon);
    const std::string path = fmt::format("{}/{}", folder.empty() ? "." : folder, name);
    const int error = check_executable(path);
    if (error == 0) return path;
    if (error == EACCES && unusable.empty()) unusable = path;
    if (colon == std::string_view::npos) break;
    folders.remove_prefix(colon + 1);
  }
  if (!unusable.empty()) refuse(name, unusable, EACCES);
  const int here = name.empty() ? ENOENT : check_executable("./" + name);
  std::string advice = here == 0 ? fmt::format("did you mean ./{}?", name) : "give its path";
  if (here == 0 || here == EACCES) {
    if (std::string python = python_advice(name); !python.empty()) advice = std::move(python);
  }
  throw LaunchError(tools::exit_code::kNotFound, "cannot find the program '{}' in PATH; {}", name, advice);
}

void refuse_program(const std::string& path, int error) {
  std::string why = strerror(error);
  if (error == ENOENT) {
    why = has_crlf(path) ? fmt::format("its lines end as on Windows; write them anew: sed -i 's/\\r$//' {}", path)
                         : "its interpreter is missing; see its first line";
  }
  if (error == ENOEXEC) {
    const std::string advice = python_advice(path);
    why += "; " + (advice.empty() ? "a script needs a first line such as #!/bin/sh" : advice);
  }
  throw LaunchError(tools::exit_code::kNotExecutable, "cannot run '{}': {}", path, why);
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

SpawnResult spawn(const ChildPlan& plan) {
  volatile int exec_error = 0;
  const pid_t parent = ::getpid();
  // vfork: no page tables to copy, and an exec that fails has told us by the time it returns here.
  const pid_t pid = ::vfork();
  if (pid == 0) become(plan, parent, exec_error);
  if (pid < 0) return {.fork_error = errno};
  if (exec_error != 0) {
    ::waitpid(pid, nullptr, 0);
    return {.exec_error = exec_error};
  }
  return {.pid = pid};
}

}  // namespace col::launch
