// How a connection begins. Nothing here waits: who connects waits in its own way until the socket can be written to.
#pragma once

#include <sys/socket.h>

#include <cerrno>

#include "core/export/module_export.hpp"
#include "core/unique_fd.hpp"

namespace col::net {

// For a stream: non-blocking and close-on-exec. Empty, with errno, if it cannot be made.
COL_MODULE_EXPORT core::UniqueFd make_socket(int family) noexcept;
// Whether an error says that the process or the system has no descriptors or no memory left.
constexpr bool is_exhausted(int error) noexcept {
  return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

// 0: it has begun, and when the socket can be written to, end_of_connect() says how it has ended; else the error.
COL_MODULE_EXPORT int begin_connect(int fd, const sockaddr* address, socklen_t size) noexcept;
// 0: it is connected, to another socket than itself; else the error.
COL_MODULE_EXPORT int end_of_connect(int fd) noexcept;

// For short messages that somebody waits for.
COL_MODULE_EXPORT void set_no_delay(int fd) noexcept;
// To notice a host that has gone silently.
void set_keep_alive(int fd) noexcept;

}  // namespace col::net
