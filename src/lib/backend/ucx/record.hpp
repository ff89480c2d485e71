// What a rank tells the others about itself in the store: all that they need to connect to it, and to know it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace col::ucx_backend {

struct Record {
  std::string secret;                // of the rank; see introduction.hpp
  std::vector<std::string> listens;  // where UCX listens for TCP: "10.77.0.1:4711"
  std::vector<std::string> hosts;    // the addresses of its host, from which it may connect: "10.77.0.1"
  bool can_watch = false;            // see Meeting::is_watched
  std::string address;               // of its worker, in UCX's bytes

  // With a proof of the group's token, so that a rank does not wait for one of another group.
  std::string encode(std::uint64_t token) const;
  // Nothing, if it is not a record of that group.
  static std::optional<Record> decode(std::string_view text, std::uint64_t token);

  // Where the record of a rank is.
  static std::string key(int rank);
};

// Lists of words without spaces or commas, as one word.
std::string as_word(const std::vector<std::string>& list);
std::vector<std::string> as_list(std::string_view word);

}  // namespace col::ucx_backend
