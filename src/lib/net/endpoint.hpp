// Where somebody listens for TCP: "host:port", "10.0.0.1:4711", "[::1]:4711".
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace col::net {

struct Endpoint {
  std::string host;  // a name or an address, without brackets
  int port = 0;      // 1 to 65535

  // "host:port", with the brackets.
  std::string text() const;
};

// Nothing when `text` is no such place.
std::optional<Endpoint> parse_endpoint(std::string_view text);

}  // namespace col::net
