#include "backend/shm/segment/shared_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <random>
#include <system_error>

#include <fmt/format.h>

#include <col/error.hpp>

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

}  // namespace col::shm_backend
