#include "backend/ucx/admission.hpp"

#include <cstddef>
#include <cstdint>
#include <new>

#include <arpa/inet.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <sys/socket.h>

namespace col::ucx_backend {
namespace {

constexpr std::uint32_t kAll = 0xffff'ffff;
constexpr std::uint32_t kNetworkHeader = static_cast<std::uint32_t>(SKF_NET_OFF);
constexpr std::uint32_t kSourceV4 = 12, kSourceV6 = 8;  // places in that header

sock_filter load(std::uint32_t place) noexcept {
  return BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kNetworkHeader + place);
}
sock_filter unless_equal_skip(std::uint32_t value, std::uint8_t instructions) noexcept {
  return BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, instructions);
}
sock_filter give(std::uint32_t bytes) noexcept {
  return BPF_STMT(BPF_RET | BPF_K, bytes);
}

void add_v4(std::vector<sock_filter>& program, const in_addr& host) {
  program.push_back(load(kSourceV4));
  program.push_back(unless_equal_skip(ntohl(host.s_addr), 1));
  program.push_back(give(kAll));
}

void add_v6(std::vector<sock_filter>& program, const in6_addr& host) {
  constexpr int kWords = 4;
  for (int word = 0; word < kWords; ++word) {
    program.push_back(load(kSourceV6 + 4 * static_cast<std::uint32_t>(word)));
    // To the end of this host's instructions: two for each word that is left, and the last one.
    program.push_back(
        unless_equal_skip(ntohl(host.s6_addr32[word]), static_cast<std::uint8_t>(2 * (kWords - 1 - word) + 1)));
  }
  program.push_back(give(kAll));
}

}  // namespace

bool admit_only(int listener, const std::vector<std::string>& hosts) noexcept {
  sockaddr_storage own{};
  socklen_t bytes = sizeof own;
  if (::getsockname(listener, reinterpret_cast<sockaddr*>(&own), &bytes) != 0) return false;
  try {
    std::vector<sock_filter> program;
    for (const std::string& host : hosts) {
      in_addr v4{};
      in6_addr v6{};
      if (own.ss_family == AF_INET && ::inet_pton(AF_INET, host.c_str(), &v4) == 1) add_v4(program, v4);
      if (own.ss_family == AF_INET6 && ::inet_pton(AF_INET6, host.c_str(), &v6) == 1) add_v6(program, v6);
    }
    program.push_back(give(0));
    if (program.size() > BPF_MAXINSNS) return false;
    const sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
    return ::setsockopt(listener, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter) == 0;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

}  // namespace col::ucx_backend
