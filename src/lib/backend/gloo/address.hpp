// Where a rank listens, and what a caller has to know to be let in.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <sys/socket.h>

namespace col::gloo_backend {

struct Address {
  sockaddr_storage sockaddr{};
  std::string secret = {};

  socklen_t sockaddr_bytes() const noexcept;
  // As text of kBytes bytes, so that many of them are read by their place.
  static constexpr std::size_t kSecretBytes = 32;
  static constexpr std::size_t kBytes = 2 + 2 + 16 + kSecretBytes;  // family, port, address, secret
  std::string encoded() const;
  // Requires: `text` has kBytes bytes.
  static Address decoded(std::string_view text);
};

}  // namespace col::gloo_backend
