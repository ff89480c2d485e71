// A stranger on a TCP port of this host: the kernel takes connections for it, and it never says a word.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include "core/unique_fd.hpp"
#include "support/catch.hpp"

namespace col::test {

class SilentListener {
 public:
  SilentListener() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    auto* const generic = reinterpret_cast<sockaddr*>(&address_);
    socklen_t size = sizeof address_;
    REQUIRE(::bind(socket_.get(), generic, size) == 0);
    REQUIRE(::listen(socket_.get(), 8) == 0);
    REQUIRE(::getsockname(socket_.get(), generic, &size) == 0);
  }
  int port() const { return ntohs(address_.sin_port); }

 private:
  const core::UniqueFd socket_;
  sockaddr_in address_{};
};

}  // namespace col::test
