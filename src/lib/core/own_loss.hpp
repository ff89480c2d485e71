// The errors that others publish of a rank that they have lost, as that rank itself reads them.
#pragma once

#include <fmt/format.h>

#include <col/error.hpp>

namespace col::core {

// True if `error` says of the rank that reads it that it is lost: then it is no cause, as that rank lives. Others have
// seen its connections close, behind an error of its own, or have lost them.
inline bool is_own_loss(const Error& error, int reader) {
  return error.code() == ErrorCode::peer_lost && error.rank() == reader && reader >= 0;
}

// The error for that rank, where it has none of its own; else `error`.
inline Error as_read_by(int reader, const Error& error) {
  if (!is_own_loss(error, reader)) return error;
  return Error(ErrorCode::aborted,
               fmt::format("others have taken this rank, {}, for lost, and have broken the group: they have lost a "
                           "connection to it; look at what they print, and at the network between",
                           reader),
               error.group());
}

}  // namespace col::core
