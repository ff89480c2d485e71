#include "group/join/shared_text.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstddef>
#include <string>

#include <fmt/format.h>

#include "core/blocked_signal.hpp"
#include "core/clock/this_process.hpp"

namespace col::group {
namespace {

constexpr std::size_t kMostBytes = std::size_t{64} << 20;

}  // namespace

core::UniqueFd share_text(std::string_view text) noexcept {
  const core::BlockedSignal too_long(SIGXFSZ);
  core::UniqueFd file(::memfd_create("col-roster", MFD_CLOEXEC));
  for (std::size_t done = 0; file && done < text.size();) {
    const ssize_t wrote = ::write(file.get(), text.data() + done, text.size() - done);
    if (wrote <= 0) return {};
    done += static_cast<std::size_t>(wrote);
  }
  return file;
}

std::optional<std::string> shared_text(std::int64_t pid, int descriptor) {
  // Nonblocking, should it have become a FIFO.
  const core::UniqueFd file(::open(fmt::format("{}/fd/{}", core::process_directory(pid), descriptor).c_str(),
                                   O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode) ||
      static_cast<std::size_t>(status.st_size) > kMostBytes)
    return std::nullopt;
  std::string text(static_cast<std::size_t>(status.st_size), '\0');
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t got = ::pread(file.get(), text.data() + done, text.size() - done, static_cast<off_t>(done));
    if (got <= 0) return std::nullopt;
    done += static_cast<std::size_t>(got);
  }
  return text;
}

}  // namespace col::group
