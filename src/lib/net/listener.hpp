// Sockets that listen.
#pragma once

#include <sys/socket.h>

#include <string>
#include <vector>

#include "core/export/module_export.hpp"
#include "core/unique_fd.hpp"

namespace col::net {

// Listens there; port 0: at one that the kernel chooses, which `address` has afterwards. Non-blocking. Empty, with
// errno, if it cannot.
COL_MODULE_EXPORT core::UniqueFd listen_at(sockaddr* address, socklen_t size) noexcept;

struct Listener {
  std::vector<core::UniqueFd> sockets;  // one for each address, or none
  int port = 0;
  // If there are none: at which address, an errno, and the same in words.
  std::string failed = {};
  int error = 0;
  std::string why = {};
};
// Listens at all of these addresses, by name or in digits, at one port; "": at all that there are.
COL_MODULE_EXPORT Listener listen_on(const std::vector<std::string>& addresses, int port);

// The next connection, non-blocking and close-on-exec. Empty, with errno, if none has come (EAGAIN) or none can be
// taken: is_exhausted().
COL_MODULE_EXPORT core::UniqueFd accept(int listener) noexcept;

// The host that others are told where somebody listens at `host`: another one if that means all addresses.
std::string host_for_others(const std::string& host);

}  // namespace col::net
