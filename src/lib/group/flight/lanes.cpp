#include "group/flight/lanes.hpp"

#include <span>
#include <utility>

#include "backend/capabilities.hpp"

namespace col::group {
namespace {

std::span<const NativeEntry> natives_of(const Channel* channel) {
  return channel != nullptr ? channel->native_entries() : std::span<const NativeEntry>();
}

Device device_of(const DeviceOps* gpu) {
  return gpu != nullptr ? gpu->device() : Device();
}

}  // namespace

Device Connections::device() const {
  return device_of(channel != nullptr ? channel->can().device : nullptr);
}

// Over the host, a call whose input is still being copied has to wait for its turn, and by then another rank may have
// started another one: plans may begin in any order, natives not.
Lane::Lane(const Core& core, Channel* over, const std::string& backend, bool may_stage)
    : channel(over),
      can(over != nullptr ? over->can() : Capabilities()),
      device(device_of(can.device)),
      dispatcher({core.name(), core.rank(), core.size(), device.type}, hosts_of(core.surroundings().peers), backend,
                 natives_of(over), device.type != Device::Type::cpu || !may_stage, core.settings()) {}

Lanes::Lanes(const Core& core, Connections connections)
    : connections_(std::move(connections)),
      own_(core, connections_.channel.get(), connections_.backend, connections_.may_stage) {
  if (own_.device.type != Device::Type::cpu)
    hosted_.emplace(core, connections_.host_channel.get(), connections_.host_backend, connections_.may_stage);
}

Lane& Lanes::lane_for(const Request& request, const CallWishes& wishes) {
  if (!hosted_ || own_.dispatcher.can_run_natively(request, wishes)) return own_;
  return *hosted_;
}

void Lanes::abort(const Error& cause) noexcept {
  if (connections_.channel) connections_.channel->abort(cause);
  if (connections_.host_channel) connections_.host_channel->abort(cause);
}

void Lanes::close() noexcept {
  connections_.channel.reset();
  connections_.host_channel.reset();
}

}  // namespace col::group
