#include "backend/shm/segment/pages.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <limits>
#include <system_error>

#include <fmt/format.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23  // in the kernel before it came to the C library's headers
#endif

namespace col::shm_backend {

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
