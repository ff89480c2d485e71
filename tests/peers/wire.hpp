// What has gone through a network interface, as the kernel counts it in the caller's network namespace.
#pragma once

#include <cstdint>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>

namespace contest {

struct WireBytes {
  std::int64_t out = 0;
  std::int64_t in = 0;
};

// Throws std::runtime_error if there is no such interface.
inline WireBytes wire_bytes(const std::string& interface) {
  std::ifstream file("/proc/net/dev");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(':');
    const std::size_t begin = line.find_first_not_of(' ');
    if (colon == std::string::npos || line.substr(begin, colon - begin) != interface) continue;
    std::istringstream fields(line.substr(colon + 1));
    WireBytes bytes;
    std::int64_t other = 0;
    fields >> bytes.in;
    for (int i = 0; i < 7; ++i) fields >> other;  // of what came in: packets, errors and the like
    if (fields >> bytes.out) return bytes;
  }
  throw std::runtime_error("there is no interface " + interface + " in /proc/net/dev");
}

}  // namespace contest
