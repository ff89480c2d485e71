#include "backend/gloo/address.hpp"

#include <cstdint>
#include <cstring>

#include <netinet/in.h>

namespace col::gloo_backend {

socklen_t Address::sockaddr_bytes() const noexcept {
  return sockaddr.ss_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
}

std::string Address::encoded() const {
  std::string text(kBytes - kSecretBytes, '\0');
  text[0] = sockaddr.ss_family == AF_INET6 ? '6' : '4';
  if (sockaddr.ss_family == AF_INET6) {
    const auto& six = reinterpret_cast<const sockaddr_in6&>(sockaddr);
    std::memcpy(text.data() + 2, &six.sin6_port, 2);
    std::memcpy(text.data() + 4, &six.sin6_addr, sizeof(six.sin6_addr));
  } else {
    const auto& four = reinterpret_cast<const sockaddr_in&>(sockaddr);
    std::memcpy(text.data() + 2, &four.sin_port, 2);
    std::memcpy(text.data() + 4, &four.sin_addr, sizeof(four.sin_addr));
  }
  return text + secret;
}

Address Address::decoded(std::string_view text) {
  Address address;
  if (text[0] == '6') {
    auto& six = reinterpret_cast<sockaddr_in6&>(address.sockaddr);
    six.sin6_family = AF_INET6;
    std::memcpy(&six.sin6_port, text.data() + 2, 2);
    std::memcpy(&six.sin6_addr, text.data() + 4, sizeof(six.sin6_addr));
  } else {
    auto& four = reinterpret_cast<sockaddr_in&>(address.sockaddr);
    four.sin_family = AF_INET;
    std::memcpy(&four.sin_port, text.data() + 2, 2);
    std::memcpy(&four.sin_addr, text.data() + 4, sizeof(four.sin_addr));
  }
  address.secret = text.substr(kBytes - kSecretBytes);
  return address;
}

}  // namespace col::gloo_backend
