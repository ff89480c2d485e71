// A port at which nobody listens, and which nobody is given before the test uses it.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <stdexcept>

#include "core/unique_fd.hpp"

namespace col::test {

// Below those that the kernel hands out to whoever asks for any port, and to connections. Programs that ask at once
// begin at different ones.
inline int free_port() {
  constexpr int kLeast = 12'000, kPorts = 20'000;
  static std::atomic<int> calls{0};
  for (int attempt = 0; attempt < kPorts; ++attempt) {
    const auto number = static_cast<std::int64_t>(::getpid()) * 101 + calls++;
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(kLeast + number % kPorts));
    const core::UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0)
      return ntohs(address.sin_port);
  }
  throw std::runtime_error("no port is free");
}

}  // namespace col::test
