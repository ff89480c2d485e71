#include "group/join/host_backend.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include <fmt/format.h>

#include "core/joined.hpp"

namespace col::group {
namespace {

struct OverHosts {
  std::string_view name;
  std::string_view wire;
};
constexpr std::array<OverHosts, 2> kOverHosts{{{"hosts", "gloo"}, {"hosts_ucx", "ucx"}}};

}  // namespace

BackendFactory& usable_backend(std::string_view name, const std::string& group) {
  BackendFactory* factory = find_backend(name);
  if (factory == nullptr)
    throw Error(ErrorCode::unavailable,
                fmt::format("backend '{}' is not part of this build of col; it has: {}", name,
                            core::joined(backend_names(), ", ")),
                group);
  if (const auto reason = factory->unavailable_reason())
    throw Error(ErrorCode::unavailable, fmt::format("backend '{}' cannot be used here: {}", name, *reason), group);
  return *factory;
}

bool is_usable(std::string_view name) {
  const BackendFactory* factory = find_backend(name);
  return factory != nullptr && !factory->unavailable_reason();
}

bool is_wire(std::string_view name) {
  return std::any_of(kOverHosts.begin(), kOverHosts.end(), [&](const OverHosts& kind) { return kind.wire == name; });
}

std::string_view fitting_backend(std::string_view wanted, bool names_wire, std::span<const PeerInfo> peers,
                                 const std::function<bool(std::string_view name)>& usable) {
  const std::vector<int> hosts = hosts_of(peers);
  const auto count = static_cast<std::size_t>(1 + *std::max_element(hosts.begin(), hosts.end()));
  const auto over_hosts = [&](const OverHosts& kind) {
    if (count == 1) return usable("shm") ? "shm" : kind.wire;
    return count < peers.size() && usable(kind.name) ? kind.name : kind.wire;
  };
  if (wanted == to_string(Backend::automatic)) return over_hosts(kOverHosts.front());
  for (const OverHosts& kind : kOverHosts) {
    if (wanted == kind.name || (names_wire && wanted == kind.wire && count > 1)) return over_hosts(kind);
  }
  return wanted;
}

}  // namespace col::group
