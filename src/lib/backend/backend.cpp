#include <algorithm>
#include <map>
#include <string>
#include <string_view>

#include <col/backend.hpp>

namespace col {

Channel::~Channel() = default;

bool Channel::moves_in_parts() const {
  return false;
}

Ticket Channel::post_filling_send(int /*peer*/, std::uint64_t /*slot*/, ConstTensorView /*data*/,
                                  std::function<std::uint64_t()> /*filled*/) {
  throw Error(ErrorCode::internal, "this channel sends from memory that is full");
}

std::uint64_t Channel::moved(Ticket /*ticket*/) {
  throw Error(ErrorCode::internal, "this channel does not know parts of messages");
}

bool Channel::is_captured(Stream /*stream*/) const {
  return false;
}

void Channel::post_after(Stream /*stream*/) {}

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
