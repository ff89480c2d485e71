// What a rank has written into the store, as another one reads it.
#pragma once

#include <string>
#include <string_view>

#include <fmt/format.h>

#include <col/error.hpp>

#include "json/json_fields.hpp"

namespace col::group {

// `what`: in words, for the message.
inline Error unreadable(std::string_view what, std::string_view why) {
  return Error(ErrorCode::internal,
               fmt::format("the {} in the store cannot be read ({}); is the store shared with another program, or with "
                           "another version of col?",
                           what, why));
}

// Throws internal if `text` is no such thing.
template <class T>
T decoded(std::string_view text, std::string_view what) {
  try {
    return core::parsed_json<T>(text, std::string(what), core::UnknownMembers::skipped);
  } catch (const Error& error) {
    throw unreadable(what, error.message());
  }
}

}  // namespace col::group
