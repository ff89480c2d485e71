#include "group/join/host.hpp"

#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <fstream>

namespace col::group {
namespace {

std::string read_namespace(const char* path) {
  std::array<char, 64> link{};
  const ssize_t length = readlink(path, link.data(), link.size());
  return length > 0 ? std::string(link.data(), static_cast<std::size_t>(length)) : std::string();
}

Host read_host() {
  Host host;
  std::array<char, HOST_NAME_MAX + 1> name{};
  if (gethostname(name.data(), name.size() - 1) == 0) host.hostname = name.data();
  std::ifstream("/proc/sys/kernel/random/boot_id") >> host.boot_id;
  host.pid_namespace = read_namespace("/proc/self/ns/pid");
  host.network_namespace = read_namespace("/proc/self/ns/net");
  return host;
}

}  // namespace

const Host& this_host() {
  if (core::Scheduler* const simulated = core::scheduler()) return simulated->host();
  static const Host host = read_host();
  return host;
}

bool is_gone(std::int64_t pid, const std::string& boot_id, const std::string& pid_namespace) {
  const Host& host = this_host();
  const bool ours = !host.boot_id.empty() && !host.pid_namespace.empty() && boot_id == host.boot_id &&
                    pid_namespace == host.pid_namespace;
  if (core::Scheduler* const simulated = core::scheduler())
    return ours && simulated->condition_of(pid) == core::ProcessCondition::gone;
  return ours && kill(static_cast<pid_t>(pid), 0) != 0 && errno == ESRCH;
}

}  // namespace col::group
