#include "group/host.hpp"

#include <unistd.h>

#include <array>
#include <climits>
#include <fstream>

namespace col::group {
namespace {

Host read_host() {
  Host host;
  std::array<char, HOST_NAME_MAX + 1> name{};
  if (gethostname(name.data(), name.size() - 1) == 0) host.hostname = name.data();
  std::ifstream("/proc/sys/kernel/random/boot_id") >> host.boot_id;
  std::array<char, 64> link{};
  const ssize_t length = readlink("/proc/self/ns/net", link.data(), link.size());
  if (length > 0) host.network_namespace.assign(link.data(), static_cast<std::size_t>(length));
  return host;
}

}  // namespace

const Host& this_host() {
  static const Host host = read_host();
  return host;
}

}  // namespace col::group
