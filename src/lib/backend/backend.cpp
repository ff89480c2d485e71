#include <algorithm>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include <col/channel.hpp>
#include <col/device.hpp>

namespace col {

Channel::~Channel() = default;

void Channel::native(const Request& request, WaitContext& wait) {
  const Ticket ticket = start_native(request, wait);
  if (ticket.id != kEnded.id) this->wait(ticket, wait);
}

MultiChannel::~MultiChannel() = default;
DeviceOps::~DeviceOps() = default;
DeviceEnd::~DeviceEnd() = default;
std::shared_ptr<void> DeviceOps::register_memory(void* /*memory*/, std::size_t /*bytes*/, WaitContext& /*wait*/) {
  throw Error(ErrorCode::unavailable, "register_memory: the backend has no use for it");
}

void DeviceOps::release_memory(const std::shared_ptr<void>& /*registration*/, WaitContext& /*wait*/) {}
bool DeviceOps::can_split() const noexcept {
  return false;
}
std::unique_ptr<Channel> DeviceOps::split(std::span<const int> /*ranks*/, const ConnectRequest& /*request*/,
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

BackendFactory::~BackendFactory() = default;
std::shared_ptr<const DeviceEnd> DeviceOps::end_of(Ticket /*ticket*/, WaitContext& /*wait*/) {
  return nullptr;
}
std::string BackendFactory::why_alone() const {
  return {};
}
std::string BackendFactory::seat(int device) {
  return device_memory().uuid(device);
}
Device::Type BackendFactory::device() const {
  return Device::Type::cpu;
}

DeviceMemory& BackendFactory::device_memory() {
  throw Error(ErrorCode::unavailable, "backend " + std::string(name()) + " has no devices");
}

}  // namespace col
