#include <string>

#include <col/backend.hpp>

namespace col {

Channel::~Channel() = default;
Device Channel::device() const {
  return {};
}

std::shared_ptr<void> Channel::allocate(std::size_t /*bytes*/, const Exchange& /*exchange*/, WaitContext& /*wait*/) {
  return nullptr;
}

void Channel::check(const Request& /*request*/) const {}

MultiChannel::~MultiChannel() = default;
MultiChannel* Channel::multi() {
  return nullptr;
}

Ticket Channel::start_native(const Request& request, WaitContext& /*wait*/) {
  throw Error(ErrorCode::internal,
              std::string(to_string(request.collective)) + ": this channel has nothing that it could start");
}

DeviceCopy::~DeviceCopy() = default;
DeviceTimer::~DeviceTimer() = default;
DeviceComparison::~DeviceComparison() = default;
DeviceMemory::~DeviceMemory() = default;

BackendFactory::~BackendFactory() = default;
Device::Type BackendFactory::device() const {
  return Device::Type::cpu;
}

DeviceMemory& BackendFactory::device_memory() {
  throw Error(ErrorCode::unavailable, "backend " + std::string(name()) + " has no devices");
}

}  // namespace col
