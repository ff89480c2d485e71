#include "net/address.hpp"

#include <netinet/in.h>

#include <array>
#include <cerrno>
#include <string_view>
#include <system_error>

namespace col::net {

Addresses resolve(const std::string& host, int port, int flags, std::string& why) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | flags;
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(host.empty() ? nullptr : host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (error != 0) why = error == EAI_SYSTEM ? std::generic_category().message(errno) : ::gai_strerror(error);
  return {error == 0 ? found : nullptr, &::freeaddrinfo};
}

std::string numeric_address(const sockaddr* address, socklen_t size) {
  std::array<char, NI_MAXHOST> text{};
  if (::getnameinfo(address, size, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) != 0) return {};
  std::string_view digits = text.data();
  constexpr std::string_view kMapped = "::ffff:";
  if (digits.starts_with(kMapped)) digits.remove_prefix(kMapped.size());
  return std::string(digits);
}

std::string numeric_peer(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  std::string digits;
  if (::getpeername(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0)
    digits = numeric_address(reinterpret_cast<const sockaddr*>(&address), size);
  return digits.empty() ? "somewhere" : digits;
}

int port_of(const sockaddr* address) noexcept {
  if (address->sa_family == AF_INET6) return ntohs(reinterpret_cast<const sockaddr_in6*>(address)->sin6_port);
  return address->sa_family == AF_INET ? ntohs(reinterpret_cast<const sockaddr_in*>(address)->sin_port) : 0;
}

std::string full_host_name(const std::string& name) {
  std::string why;
  if (name.find('.') != std::string::npos) return name;
  const Addresses found = resolve(name, 0, AI_CANONNAME, why);
  if (found == nullptr || found->ai_canonname == nullptr) return name;
  const std::string_view full = found->ai_canonname;
  return full.starts_with(name + ".") ? std::string(full) : name;
}

}  // namespace col::net
