#include "helpers.hpp"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <thread>

#include <col/job.hpp>

#include "support/catch.hpp"
#include "support/fork.hpp"
#include "support/temp_dir.hpp"

namespace core_test {

using namespace std::chrono_literals;

namespace {

constexpr auto kPatience = 20s;

void set_variable(const std::string& name, const std::optional<std::string>& value) {
  if (value) {
    ::setenv(name.c_str(), value->c_str(), 1);
  } else {
    ::unsetenv(name.c_str());
  }
}

}  // namespace

std::vector<col::core::Instructions> available_instructions() {
  std::vector<col::core::Instructions> all;
  std::copy_if(col::core::kAllInstructions.begin(), col::core::kAllInstructions.end(), std::back_inserter(all),
               col::core::is_available);
  return all;
}

std::size_t entries(const std::string& directory) {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(directory), {}));
}

ScopedVariable::ScopedVariable(std::string name, std::optional<std::string> value) : name_(std::move(name)) {
  if (const char* old = ::getenv(name_.c_str())) old_ = old;
  set_variable(name_, value);
}

ScopedVariable::~ScopedVariable() {
  set_variable(name_, old_);
}

Child::Child(const std::function<int(Child&)>& body) {
  std::array<int, 2> sockets;
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets.data()) != 0)
    throw std::runtime_error("socketpair failed");
  pid_ = col::test::fork_at_rest();
  if (pid_ < 0) throw std::runtime_error("fork failed");
  socket_ = sockets[pid_ == 0 ? 1 : 0];
  ::close(sockets[pid_ == 0 ? 0 : 1]);
  if (pid_ != 0) return;
  int code = 99;
  try {
    code = body(*this);
  } catch (const std::exception& error) {
    const std::string line = std::string("child: ") + error.what() + "\n";
    if (::write(STDERR_FILENO, line.data(), line.size()) < 0) code = 98;
  } catch (...) {
    // A failed REQUIRE of Catch2: the code tells.
  }
  ::_exit(code);
}

Child::~Child() {
  ::close(socket_);
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
}

void Child::signal() const {
  // A peer that is gone is noticed by the test where it waits for it.
  static_cast<void>(::send(socket_, "x", 1, MSG_NOSIGNAL));
}

bool Child::wait_for_signal() const {
  pollfd entry{socket_, POLLIN, 0};
  char byte;
  return ::poll(&entry, 1, std::chrono::milliseconds(kPatience).count()) == 1 && ::read(socket_, &byte, 1) == 1;
}

void Child::kill_without_reaping() const {
  ::kill(pid_, SIGKILL);
  siginfo_t info{};
  ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT);
}

int Child::wait() {
  const auto deadline = col::Deadline::after(kPatience);
  while (!deadline.expired()) {
    int status = 0;
    if (::waitpid(pid_, &status, WNOHANG) == pid_) {
      pid_ = 0;
      return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
    std::this_thread::sleep_for(1ms);
  }
  return -1;
}

std::string run_self(const std::string& test_name,
                     const std::vector<std::pair<std::string, std::optional<std::string>>>& variables) {
  const col::test::TempDir directory;
  const std::string captured = directory / "stderr";
  Child child([&](Child&) {
    for (const auto& [name, value] : variables) set_variable(name, value);
    if (::freopen(captured.c_str(), "w", stderr) == nullptr) return 97;
    if (::freopen("/dev/null", "w", stdout) == nullptr) return 97;
    ::execl("/proc/self/exe", "/proc/self/exe", test_name.c_str(), nullptr);
    return 97;
  });
  const int code = child.wait();
  INFO("exit code of '" << test_name << "': " << code);
  REQUIRE(code == 0);
  return read_file(captured);
}

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  INFO("reading " << path);
  REQUIRE(file.good());
  return std::string(std::istreambuf_iterator<char>(file), {});
}

void write_file(const std::string& path, const std::string& content) {
  std::ofstream file(path, std::ios::binary);
  file << content;
  file.close();
  REQUIRE(file.good());
}

col::Error error_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const col::Error& error) {
    return error;
  }
  FAIL("no col::Error was thrown");
  throw std::logic_error("unreachable");
}

}  // namespace core_test
