#include <algorithm>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include <col/backend.hpp>

namespace col {

Channel::~Channel() = default;

std::shared_ptr<void> Channel::allocate(std::size_t /*bytes*/, const Exchange& /*exchange*/, WaitContext& /*wait*/) {
  return nullptr;
}

MultiChannel::~MultiChannel() = default;
ImmediateExtension::~ImmediateExtension() = default;
PartsExtension::~PartsExtension() = default;
SideExtension::~SideExtension() = default;
NearExtension::~NearExtension() = default;
WireExtension::~WireExtension() = default;
CommonMemoryExtension::~CommonMemoryExtension() = default;
ReasonExtension::~ReasonExtension() = default;
DeviceExtension::~DeviceExtension() = default;
DeviceEnd::~DeviceEnd() = default;
std::shared_ptr<void> DeviceExtension::register_memory(void* /*memory*/, std::size_t /*bytes*/, WaitContext& /*wait*/) {
  throw Error(ErrorCode::unavailable, "register_memory: the backend has no use for it");
}

void DeviceExtension::release_memory(const std::shared_ptr<void>& /*registration*/, WaitContext& /*wait*/) {}
bool DeviceExtension::can_split() const noexcept {
  return false;
}
std::unique_ptr<Channel> DeviceExtension::split(std::span<const int> /*ranks*/, const ConnectRequest& /*request*/,
                                                WaitContext& /*wait*/) {
  return nullptr;
}
DeviceCopy::~DeviceCopy() = default;
DeviceTimer::~DeviceTimer() = default;
DeviceComparison::~DeviceComparison() = default;
DeviceMemory::~DeviceMemory() = default;

std::vector<int> hosts_of(std::span<const PeerInfo> peers) {
  using Key = std::tuple<std::string_view, std::string_view, std::string_view>;
  const auto key_of = [](const PeerInfo& peer) {
    return Key(peer.boot_id, peer.network_namespace, peer.pid_namespace);
  };
  std::map<Key, int> numbers;
  std::vector<int> hosts;
  hosts.reserve(peers.size());
  int count = 0;
  for (const PeerInfo& peer : peers) {
    const bool known = !peer.boot_id.empty() && !peer.network_namespace.empty();
    // Most groups are on one host.
    if (known && !hosts.empty() && key_of(peer) == key_of(peers.front())) {
      hosts.push_back(0);
      continue;
    }
    const auto host = known ? numbers.find(key_of(peer)) : numbers.end();
    hosts.push_back(host != numbers.end() ? host->second : count++);
    if (known) numbers.emplace(key_of(peer), hosts.back());
  }
  return hosts;
}

std::optional<SharedDevice> find_shared_device(std::span<const Seat> seats) {
  std::map<std::string_view, int> users;
  for (const Seat& seat : seats) {
    const auto [first, is_alone] = users.emplace(seat.device, seat.rank);
    if (is_alone) continue;
    SharedDevice shared{first->second, seat.rank, seat.device, ""};
    // Each rank looks by itself whether a device is shared: all must put up with it.
    const auto hindered =
        std::find_if(seats.begin(), seats.end(), [](const Seat& one) { return !one.why_alone.empty(); });
    if (hindered != seats.end())
      shared.problem = "on rank " + std::to_string(hindered->rank) + ", " + hindered->why_alone;
    return shared;
  }
  return std::nullopt;
}

BackendFactory::~BackendFactory() = default;
std::shared_ptr<const DeviceEnd> DeviceExtension::end_of(Ticket /*ticket*/, WaitContext& /*wait*/) {
  return nullptr;
}
std::string BackendFactory::why_alone() const {
  return {};
}
Device::Type BackendFactory::device() const {
  return Device::Type::cpu;
}

DeviceMemory& BackendFactory::device_memory() {
  throw Error(ErrorCode::unavailable, "backend " + std::string(name()) + " has no devices");
}

}  // namespace col
