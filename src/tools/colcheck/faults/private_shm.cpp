#include "colcheck/faults/private_shm.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

namespace col::colcheck {
namespace {

// Made before the holder is, which may only make system calls.
struct Plan {
  std::string users, groups, options;
  int status_fd;
  pid_t parent;
};

bool write_file(const char* path, std::string_view text) {
  const int fd = ::open(path, O_WRONLY | O_CLOEXEC);
  const bool good = fd >= 0 && ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  if (fd >= 0) ::close(fd);
  return good;
}

bool enter(const Plan& plan, bool& own_users) {
  if (::unshare(CLONE_NEWNS) == 0) return true;
  own_users = true;
  return ::unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0 && write_file("/proc/self/uid_map", plan.users) &&
         write_file("/proc/self/setgroups", "deny") && write_file("/proc/self/gid_map", plan.groups);
}

// What the holder says when it is ready, or not.
struct Status {
  int error = 0;
  bool own_users = false;
};

[[noreturn]] void hold(const Plan& plan) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != plan.parent) ::_exit(0);
  Status status;
  const bool good = enter(plan, status.own_users) &&
                    ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                    ::mount("tmpfs", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, plan.options.c_str()) == 0;
  if (!good) status.error = errno != 0 ? errno : EPERM;
  if (::write(plan.status_fd, &status, sizeof status) != static_cast<ssize_t>(sizeof status)) ::_exit(1);
  // The namespace change has cleared it.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  while (good) ::pause();
  ::_exit(0);
}

[[noreturn]] void fail(int error) {
  throw std::system_error(error, std::generic_category(), "cannot mount a /dev/shm of one's own");
}

}  // namespace

PrivateShm::PrivateShm(std::size_t bytes) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) fail(errno);
  const tools::UniqueFd reading(ends[0]);
  tools::UniqueFd writing(ends[1]);
  const Plan plan{fmt::format("{0} {0} 1", ::geteuid()), fmt::format("{0} {0} 1", ::getegid()),
                  fmt::format("size={},mode=1777", bytes), writing.get(), ::getpid()};
  holder_ = ::fork();
  if (holder_ == 0) hold(plan);
  if (holder_ < 0) fail(errno);
  writing.reset();
  Status status;
  constexpr int kPatienceMs = 10'000;
  pollfd ready{reading.get(), POLLIN, 0};
  const bool told = ::poll(&ready, 1, kPatienceMs) == 1 &&
                    ::read(reading.get(), &status, sizeof status) == static_cast<ssize_t>(sizeof status);
  if (told && status.error == 0) {
    mount_.reset(::open(fmt::format("/proc/{}/ns/mnt", holder_).c_str(), O_RDONLY | O_CLOEXEC));
    if (status.own_users) user_.reset(::open(fmt::format("/proc/{}/ns/user", holder_).c_str(), O_RDONLY | O_CLOEXEC));
    if (mount_ && (user_ || !status.own_users)) return;
  }
  const int error = !told ? ETIMEDOUT : status.error != 0 ? status.error : errno;
  end();
  fail(error);
}

PrivateShm::~PrivateShm() {
  end();
}

void PrivateShm::end() noexcept {
  ::kill(holder_, SIGKILL);
  while (::waitpid(holder_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

std::string PrivateShm::path() const {
  return fmt::format("/proc/{}/root/dev/shm", holder_);
}

}  // namespace col::colcheck
