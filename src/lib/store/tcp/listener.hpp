// Where the server of a TCP store listens.
#pragma once

#include <string>
#include <vector>

#include "core/unique_fd.hpp"

namespace col::store::tcp {

struct Listener {
  std::vector<core::UniqueFd> sockets;  // non-blocking; one for each address
  int port = 0;
};

// Listens at listen_addresses(host); port 0: one that the kernel chooses. Throws io or resource.
Listener listen_on(const std::string& host, int port);

}  // namespace col::store::tcp
