#include "backend/shm/segment/shared_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <limits>
#include <random>
#include <system_error>

#include <fmt/format.h>

#include <col/error.hpp>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23  // in the kernel before it came to the C library's headers
#endif

namespace col::shm_backend {
namespace {

// Wanted by newer kernels, unknown to older ones and to their headers.
#ifdef MFD_NOEXEC_SEAL
constexpr unsigned kNoExecSeal = MFD_NOEXEC_SEAL;
#else
constexpr unsigned kNoExecSeal = 0x8U;
#endif

std::string unguessable_name() {
  std::random_device device;
  return fmt::format("col-{:08x}{:08x}{:08x}{:08x}", device(), device(), device(), device());
}

}  // namespace

core::UniqueFd make_memfd() {
  constexpr const char* kName = "col-shm";  // what /proc/<pid>/maps shows
  const int fd = ::memfd_create(kName, MFD_CLOEXEC | MFD_ALLOW_SEALING | kNoExecSeal);
  if (fd >= 0 || errno != EINVAL) return core::UniqueFd(fd);
  return core::UniqueFd(::memfd_create(kName, MFD_CLOEXEC | MFD_ALLOW_SEALING));
}

void seal(int fd) noexcept {
  // Not vital: without it the ranks have only one another to fear.
  ::fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
}

SharedFile::SharedFile(const std::string& directory) : path_(directory + "/" + unguessable_name()) {
  fd_.reset(::open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (fd_) return;
  const int error = errno;
  const bool exhausted = error == ENOSPC || error == EDQUOT || error == EMFILE || error == ENFILE || error == ENOMEM;
  throw Error(exhausted ? ErrorCode::resource : ErrorCode::io,
              fmt::format("shm: cannot create a file to share in {} ({}); {}, or choose another backend", directory,
                          std::generic_category().message(error),
                          exhausted ? "free space or descriptors" : "make it a directory that all may write to"));
}

SharedFile::~SharedFile() {
  ::unlink(path_.c_str());
}

core::UniqueFd open_regular_file(const std::string& path) {
  // Looks first, by a descriptor that cannot be read or written.
  const core::UniqueFd looking(::open(path.c_str(), O_PATH | O_CLOEXEC));
  if (!looking) return {};
  struct stat status {};
  if (::fstat(looking.get(), &status) != 0) return {};
  if (!S_ISREG(status.st_mode) || status.st_uid != ::geteuid()) {
    errno = EPERM;
    return {};
  }
  core::UniqueFd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK));
  struct stat opened {};
  if (fd && (::fstat(fd.get(), &opened) != 0 || opened.st_ino != status.st_ino || opened.st_dev != status.st_dev)) {
    errno = ESTALE;
    return {};
  }
  return fd;
}

// ---- Pages

bool allows_file(std::size_t bytes) noexcept {
  rlimit limit{};
  return ::getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur >= bytes;
}

std::optional<std::string> make_file(int fd, std::size_t bytes, std::size_t reserved) {
  if (bytes > static_cast<std::size_t>(std::numeric_limits<off_t>::max())) return "no file can be that large";
  // Beyond it the kernel would send SIGXFSZ instead of an error.
  rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < bytes)
    return fmt::format("ulimit -f allows files of {} KiB", limit.rlim_cur >> 10);
  // In parts: on older kernels a signal undoes all that one call has reserved, and a timer could do so for ever.
  constexpr std::size_t kPart = std::size_t{256} << 10;
  for (std::size_t done = 0; done < reserved; done += kPart) {
    const std::size_t part = std::min(kPart, reserved - done);
    int error = 0;
    while ((error = ::posix_fallocate(fd, static_cast<off_t>(done), static_cast<off_t>(part))) == EINTR) {
    }
    if (error != 0) return std::generic_category().message(error);
  }
  if (::ftruncate(fd, static_cast<off_t>(bytes)) != 0) return std::generic_category().message(errno);
  return std::nullopt;
}

std::optional<std::string> populate(std::byte* begin, std::size_t bytes) {
  // From a page's begin, where pages are larger than ours: to take a part of a neighbour's changes nothing in it.
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto before = reinterpret_cast<std::uintptr_t>(begin) & (page - 1);
  int result = 0;
  while ((result = ::madvise(begin - before, bytes + before, MADV_POPULATE_WRITE)) != 0 && errno == EINTR) {
  }
  if (result == 0) return std::nullopt;
  return std::generic_category().message(errno == EFAULT ? ENOSPC : errno);
}

bool can_populate() noexcept {
  static const bool kCan = ::madvise(nullptr, 0, MADV_POPULATE_WRITE) == 0;
  return kCan;
}

}  // namespace col::shm_backend
