#include "net/interfaces.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <limits>
#include <memory>
#include <optional>
#include <sstream>
#include <utility>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <col/error.hpp>

namespace col::net {
namespace {

std::optional<Interface> usable(const ifaddrs& entry) {
  if (entry.ifa_addr == nullptr) return std::nullopt;
  Interface result;
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (entry.ifa_addr->sa_family == AF_INET) {
    result.sockaddr_bytes = sizeof(sockaddr_in);
    std::memcpy(&result.sockaddr, entry.ifa_addr, sizeof(sockaddr_in));
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(entry.ifa_addr)->sin_addr, text.data(), text.size());
  } else if (entry.ifa_addr->sa_family == AF_INET6) {
    const auto& address = reinterpret_cast<const sockaddr_in6*>(entry.ifa_addr)->sin6_addr;
    // A link-local address has no meaning on another machine.
    if (IN6_IS_ADDR_LINKLOCAL(&address)) return std::nullopt;
    result.sockaddr_bytes = sizeof(sockaddr_in6);
    std::memcpy(&result.sockaddr, entry.ifa_addr, sizeof(sockaddr_in6));
    inet_ntop(AF_INET6, &address, text.data(), text.size());
  } else {
    return std::nullopt;
  }
  result.name = entry.ifa_name;
  result.address = text.data();
  result.up = (entry.ifa_flags & IFF_UP) != 0;
  result.loopback = (entry.ifa_flags & IFF_LOOPBACK) != 0;
  return result;
}

std::string candidates(const std::vector<Interface>& all) {
  std::string text;
  for (const Interface& i : all) {
    text += fmt::format("{}{} ({}{})", text.empty() ? "" : ", ", i.name, i.address, i.up ? "" : ", down");
  }
  return text.empty() ? "none" : text;
}

// The interface of the IPv4 default route with the lowest metric; empty if there is none.
std::string default_route_interface() {
  std::ifstream table("/proc/net/route");
  std::string line;
  std::getline(table, line);  // the heading
  std::string best;
  long best_metric = std::numeric_limits<long>::max();
  while (std::getline(table, line)) {
    std::istringstream fields(line);
    std::string name, destination, gateway, flags, references, uses, mask;
    long metric = 0;
    fields >> name >> destination >> gateway >> flags >> references >> uses >> metric >> mask;
    if (fields && destination == "00000000" && mask == "00000000" && metric < best_metric) {
      best = name;
      best_metric = metric;
    }
  }
  return best;
}

bool looks_virtual(const std::string& name) {
  static constexpr std::array<std::string_view, 8> kPrefixes = {"docker", "veth",    "virbr", "br-",
                                                                "cni",    "flannel", "cali",  "tun"};
  return std::any_of(kPrefixes.begin(), kPrefixes.end(), [&](std::string_view p) { return name.starts_with(p); });
}

template <class Predicate>
const Interface* first_up(const std::vector<Interface>& all, Predicate predicate) {
  const auto found = std::find_if(all.begin(), all.end(), [&](const Interface& i) { return i.up && predicate(i); });
  return found == all.end() ? nullptr : &*found;
}

bool is_loopback(const Interface& i) {
  if (i.sockaddr.ss_family == AF_INET6) return i.address == "::1";
  return i.address.starts_with("127.");
}

std::vector<Interface> choose_wanted(std::string_view backend, const std::vector<Interface>& all,
                                     std::string_view wanted) {
  std::vector<Interface> chosen;
  std::istringstream names{std::string(wanted)};
  for (std::string name; std::getline(names, name, ',');) {
    const auto is_space = [](char c) { return c == ' ' || c == '\t'; };
    name.erase(std::remove_if(name.begin(), name.end(), is_space), name.end());
    if (const Interface* found = first_up(all, [&](const Interface& i) { return i.name == name; }))
      chosen.push_back(*found);
  }
  if (!chosen.empty()) return chosen;
  throw Error(ErrorCode::unavailable,
              fmt::format("{}: COL_SOCKET_IFNAME={} names no interface that is up and has an address; there are: {}",
                          backend, wanted, candidates(all)));
}

}  // namespace

std::vector<Interface> list_interfaces() {
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0)
    throw Error(ErrorCode::io, fmt::format("cannot list the network interfaces: {}", std::strerror(errno)));
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(first, &freeifaddrs);
  std::vector<Interface> all;
  for (const ifaddrs* entry = first; entry != nullptr; entry = entry->ifa_next) {
    if (auto interface = usable(*entry)) all.push_back(*std::move(interface));
  }
  std::stable_partition(all.begin(), all.end(), [](const Interface& i) { return i.sockaddr.ss_family == AF_INET; });
  return all;
}

std::vector<Interface> choose_interfaces(std::string_view backend, bool same_host, std::string_view wanted) {
  const std::vector<Interface> all = list_interfaces();
  if (same_host) {
    for (const std::string_view address : {"127.0.0.1", "::1"}) {
      if (const Interface* lo = first_up(all, [&](const Interface& i) { return i.address == address; })) return {*lo};
    }
    throw Error(
        ErrorCode::unavailable,
        fmt::format("{}: the loopback interface is down, or has neither 127.0.0.1 nor ::1 (ip link set lo up); there "
                    "are: {}",
                    backend, candidates(all)));
  }
  if (!wanted.empty()) return choose_wanted(backend, all, wanted);
  const std::string routed = default_route_interface();
  const Interface* chosen = first_up(all, [&](const Interface& i) { return i.name == routed; });
  if (chosen == nullptr) {
    chosen = first_up(all, [](const Interface& i) { return !is_loopback(i) && !looks_virtual(i.name); });
  }
  if (chosen == nullptr) chosen = first_up(all, [](const Interface& i) { return !is_loopback(i); });
  if (chosen != nullptr) return {*chosen};
  throw Error(ErrorCode::unavailable,
              fmt::format("{}: no network interface that other hosts can reach is up; there are: {}; bring one up or "
                          "name one in COL_SOCKET_IFNAME",
                          backend, candidates(all)));
}

}  // namespace col::net
