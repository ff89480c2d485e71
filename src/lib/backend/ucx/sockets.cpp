#include "backend/ucx/sockets.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>

#include <dirent.h>
#include <fmt/format.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "backend/ucx/admission.hpp"
#include "core/log.hpp"
#include "net/address.hpp"

namespace col::ucx_backend {
namespace {

constexpr std::chrono::milliseconds kInterval{500};
// A connection without data is known to be dead after 4 s: one of silence, and three probes.
constexpr int kIdleSeconds = 1, kProbeSeconds = 1, kProbes = 3;

template <class Visit>
void for_each_descriptor(Visit visit) {
  const std::unique_ptr<DIR, int (*)(DIR*)> all(::opendir("/proc/self/fd"), &::closedir);
  if (all == nullptr) return;
  while (const dirent* const entry = ::readdir(all.get())) {
    int descriptor = -1;
    const char* const end = entry->d_name + std::strlen(entry->d_name);
    if (std::from_chars(entry->d_name, end, descriptor).ptr == end) visit(descriptor);
  }
}

int option_of(int descriptor, int level, int name) noexcept {
  int value = -1;
  socklen_t size = sizeof value;
  return ::getsockopt(descriptor, level, name, &value, &size) == 0 ? value : -1;
}

using Name = int (*)(int, sockaddr*, socklen_t*);

// Of one end of a TCP connection; empty if there is none.
std::string address_by(Name name, int descriptor) {
  sockaddr_storage address{};
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  socklen_t size = sizeof address;
  if (name(descriptor, generic, &size) != 0) return "";
  const std::string digits = net::numeric_address(generic, size);
  return digits.empty() ? digits : fmt::format("{}:{}", digits, net::port_of(generic));
}

void set(int descriptor, int level, int name, int value) noexcept {
  ::setsockopt(descriptor, level, name, &value, sizeof value);
}

// For how long the other side's kernel has said nothing, if there is something that it has to answer. What fills its
// window for long, because its process does not read, is answered.
std::chrono::milliseconds silence_of(int descriptor) noexcept {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (::getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return {};
  const bool asked = (info.tcpi_unacked > 0 && info.tcpi_retransmits > 0) || info.tcpi_probes > 1;
  return std::chrono::milliseconds(asked ? info.tcpi_last_ack_recv : 0);
}

}  // namespace

std::set<std::string> Sockets::listening() {
  std::set<std::string> all;
  for_each_descriptor([&](int descriptor) {
    if (option_of(descriptor, SOL_SOCKET, SO_ACCEPTCONN) == 1 &&
        option_of(descriptor, SOL_SOCKET, SO_PROTOCOL) == IPPROTO_TCP)
      all.insert(address_by(&::getsockname, descriptor));
  });
  return all;
}

bool Sockets::is_own(int descriptor) const {
  if (option_of(descriptor, SOL_SOCKET, SO_PROTOCOL) != IPPROTO_TCP) return false;
  return own_.contains(address_by(&::getsockname, descriptor)) ||
         peers_.contains(address_by(&::getpeername, descriptor));
}

void Sockets::shut() const noexcept {
  try {
    for_each_descriptor([this](int descriptor) {
      // UCX closes a listener that fails, and would take the next descriptor of that number for it.
      if (is_own(descriptor) && option_of(descriptor, SOL_SOCKET, SO_ACCEPTCONN) != 1)
        ::shutdown(descriptor, SHUT_RDWR);
    });
  } catch (const std::exception&) {  // out of memory: the end of the process shuts them
  }
}

bool Sockets::look() {
  const auto now = Deadline::Clock::now();
  if (now < next_look_) return false;
  next_look_ = now + kInterval;
  for_each_descriptor([&](int descriptor) { look_at(descriptor, now); });
  return true;
}

void Sockets::admit(const std::vector<std::string>& hosts) {
  hosts_ = {hosts.begin(), hosts.end()};
  for_each_descriptor([&](int descriptor) {
    if (option_of(descriptor, SOL_SOCKET, SO_ACCEPTCONN) != 1 ||
        !own_.contains(address_by(&::getsockname, descriptor)) || admit_only(descriptor, hosts))
      return;
    core::log::info("ucx: cannot make the kernel drop connections of other hosts ({} addresses); they are cut off",
                    hosts.size());
  });
  next_look_ = {};
}

void Sockets::look_at(int descriptor, Deadline::Clock::time_point now) {
  if (option_of(descriptor, SOL_SOCKET, SO_PROTOCOL) != IPPROTO_TCP) return;
  const std::string theirs = address_by(&::getpeername, descriptor);
  if (theirs.empty()) return;
  const std::string ours = address_by(&::getsockname, descriptor);
  if (!own_.contains(ours) && !peers_.contains(theirs)) return;
  const auto [connection, is_new] = probed_.emplace(fmt::format("{} {}", ours, theirs), now);
  if (is_new) {
    set(descriptor, IPPROTO_TCP, TCP_KEEPIDLE, kIdleSeconds);
    set(descriptor, IPPROTO_TCP, TCP_KEEPINTVL, kProbeSeconds);
    set(descriptor, IPPROTO_TCP, TCP_KEEPCNT, kProbes);
    set(descriptor, SOL_SOCKET, SO_KEEPALIVE, 1);
  }
  const bool is_stranger =
      own_.contains(ours) && !hosts_.empty() && !hosts_.contains(theirs.substr(0, theirs.rfind(':')));
  // Where nothing was asked, nothing was answered: only what is probed has an answer every second.
  const auto silence = std::min<Duration>(silence_of(descriptor), now - connection->second);
  if (silence >= kSilence)
    core::log::info("ucx: {} has answered nothing for {} ms; its connection is shut", theirs,
                    std::chrono::duration_cast<std::chrono::milliseconds>(silence).count());
  if (is_stranger || silence >= kSilence) ::shutdown(descriptor, SHUT_RDWR);
}

}  // namespace col::ucx_backend
