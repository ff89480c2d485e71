#include "helpers.hpp"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <type_traits>

#include "common/element.hpp"
#include "support/catch.hpp"
#include "support/fork.hpp"
#include "support/soon.hpp"

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

void randomize(std::span<std::byte> bytes, col::DType dtype, std::mt19937& random) {
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  const auto put = [&](const auto& special) {
    using T = std::remove_cvref_t<decltype(special[0])>;
    for (std::size_t i = 0; i + sizeof(T) <= bytes.size(); i += sizeof(T)) {
      if (random() % 3 != 0) continue;
      T value = special[random() % special.size()];
      // Numbers that are near one another.
      if (std::is_floating_point_v<T> && random() % 2 == 0)
        value = static_cast<T>(std::ldexp(static_cast<float>(random() % 4096), 1 - static_cast<int>(random() % 30)));
      std::memcpy(&bytes[i], &value, sizeof(T));
    }
  };
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  using Words = std::array<std::uint16_t, 12>;
  if (dtype == col::DType::float32)
    put(std::array{0.0F, -0.0F, 1.0F, -1.0F, -1.5F, 1e-40F, -1e-45F, 0x1p-24F, 0x1.8p-25F, 65519.996F, 65520.0F,
                   1.00390625F, kInfinity, -kInfinity, 3.4e38F, std::numeric_limits<float>::quiet_NaN(),
                   std::bit_cast<float>(0x7fc0'1234U), std::bit_cast<float>(0xff80'0001U)});
  if (dtype == col::DType::float64)
    put(std::array{0.0, -0.0, 1.0, -1.0, -1.5, 5e-324, 1e-40, 1.7e308, -1.7e308, HUGE_VAL, -HUGE_VAL, kNaN});
  if (dtype == col::DType::float16)
    put(Words{0, 0x8000, 1, 0x8001, 0x03ff, 0x0400, 0x3c00, 0xbc00, 0x7bff, 0x7c00, 0xfc00, 0x7c01});
  if (dtype == col::DType::bfloat16)
    put(Words{0, 0x8000, 1, 0x8001, 0x007f, 0x0080, 0x3f80, 0xbf80, 0x7f7f, 0x7f80, 0xff80, 0x7f81});
}  // of 8 bits, random ones are all of them

float rounded(col::DType dtype, float exact) {
  return col::tools::with_element(dtype, [exact]<class T>(T) {
    if constexpr (col::tools::is_narrow_v<T>) return static_cast<float>(T(exact));
    return exact;
  });
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
  int status = 0;
  if (!col::test::soon([&] { return ::waitpid(pid_, &status, WNOHANG) == pid_; })) return -1;
  pid_ = 0;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
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

void check_error(col::ErrorCode code, const std::vector<std::string>& parts, const std::function<void()>& body) {
  const col::Error error = error_of(body);
  INFO(error.what());
  CHECK(error.code() == code);
  for (const std::string& part : parts) {
    INFO("looking for: " << part);
    CHECK(error.message().find(part) != std::string::npos);
  }
}

}  // namespace core_test
