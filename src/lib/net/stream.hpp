// One try to move bytes over a connected socket.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <span>
#include <string_view>

#include <col/types.hpp>

#include "core/export/module_export.hpp"
#include "net/output.hpp"

namespace col::net {

// What has come of a try: some bytes; none, as nothing is there, or nothing fits in; or the end.
struct Moved {
  std::size_t bytes = 0;
  bool has_ended = false;
  int error = 0;  // of the end; 0: the other side has closed the connection
};

// None of them blocks. With `may_block`, receive() does for as long as the socket's own timeout says, and a signal ends
// that.
COL_MODULE_EXPORT Moved receive(int fd, std::span<char> room, bool may_block = false) noexcept;
COL_MODULE_EXPORT Moved send(int fd, std::string_view bytes) noexcept;
// The same with several parts, over a socket that does not block.
COL_MODULE_EXPORT Moved receive(int fd, std::span<const iovec> parts) noexcept;
COL_MODULE_EXPORT Moved send(int fd, std::span<const iovec> parts) noexcept;
// Sends of the front. The caller drops it.
COL_MODULE_EXPORT Moved send(int fd, const Output& output) noexcept;

// Waits until `fd` has one of `events` or an error, or for `at_most`. Returns whether it has.
COL_MODULE_EXPORT bool wait_for(int fd, short events, Duration at_most) noexcept;

}  // namespace col::net
