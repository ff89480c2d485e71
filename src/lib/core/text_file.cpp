#include "core/text_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <system_error>

#include <fmt/format.h>

#include <col/error.hpp>

#include "core/unique_fd.hpp"

namespace col::core {
namespace {

constexpr std::size_t kMost = std::size_t{256} << 20;

[[noreturn]] void fail(const std::string& path, std::string_view what, const std::string& why) {
  throw Error(ErrorCode::io, fmt::format("cannot read {} '{}': {}", what, path, why));
}

}  // namespace

std::string read_text_file(const std::string& path, std::string_view what) {
  // O_NONBLOCK: a named pipe without a writer is an empty file rather than an endless wait.
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file) fail(path, what, std::generic_category().message(errno));
  std::string content;
  std::array<char, 65536> buffer;
  while (true) {
    const ssize_t n = ::read(file.get(), buffer.data(), buffer.size());
    if (n == 0) return content;
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(path, what, std::generic_category().message(errno));
    content.append(buffer.data(), static_cast<std::size_t>(n));
    if (content.size() > kMost) fail(path, what, "it is larger than 256 MiB; is it the right file?");
  }
}

}  // namespace col::core
