#include "colcheck/faults/scratch.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <system_error>
#include <utility>

namespace col::colcheck {
namespace {

// In a child of a process that may have threads: system calls alone. In a session of its own, so that ^C and what ends
// the process group pass it by, and with none of the files that others may wait for the end of.
[[noreturn]] void wait_and_remove(int maker, char* const* command) {
  ::setsid();
  for (const int number : {SIGHUP, SIGINT, SIGTERM}) ::signal(number, SIG_IGN);
  const int null = ::open("/dev/null", O_RDWR);
  for (const int standard : {0, 1, 2}) ::dup2(null, standard);
  constexpr int kMaker = 3;
  if (maker != kMaker) ::dup2(maker, kMaker);
  ::close_range(kMaker + 1, ~0U, 0);
  char byte;
  while (::read(kMaker, &byte, 1) < 0 && errno == EINTR) {
  }
  ::execv(command[0], command);
  ::_exit(1);
}

}  // namespace

Scratch::Scratch(std::string path) : path_(std::move(path)) {
  if (::mkdir(path_.c_str(), 0700) != 0)
    throw std::system_error(errno, std::generic_category(), "cannot make the directory " + path_);
  std::string program = "/bin/rm", options = "-rf", end = "--", directory = path_;
  const std::array<char*, 5> command{program.data(), options.data(), end.data(), directory.data(), nullptr};
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return;  // it goes with this object all the same
  const tools::UniqueFd maker(ends[0]);
  alive_.reset(ends[1]);
  remover_ = ::fork();
  if (remover_ == 0) wait_and_remove(maker.get(), command.data());
}

Scratch::~Scratch() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
  alive_.reset();
  if (remover_ < 0) return;
  while (::waitpid(remover_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace col::colcheck
