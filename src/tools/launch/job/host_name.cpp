#include "launch/job/host_name.hpp"

#include <unistd.h>

#include <array>

namespace col::launch {

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

}  // namespace col::launch
