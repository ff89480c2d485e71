#include "core/random.hpp"

#include <sys/random.h>

#include <cerrno>
#include <system_error>

#include <fmt/format.h>

#include <col/error.hpp>

namespace col::core {

std::string hex(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  text.reserve(2 * bytes.size());
  for (const char byte : bytes) {
    text += kDigits[static_cast<unsigned char>(byte) >> 4];
    text += kDigits[static_cast<unsigned char>(byte) & 0xf];
  }
  return text;
}

std::string random_hex(std::size_t digits) {
  std::string bytes(digits / 2, '\0');
  // So few bytes are never cut short, and never wait once the machine has started.
  while (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    if (errno != EINTR)
      throw Error(ErrorCode::io, fmt::format("the system gives no random bytes ({}); look whether a sandbox forbids "
                                             "getrandom(2)",
                                             std::generic_category().message(errno)));
  }
  return hex(bytes);
}

}  // namespace col::core
