#include <string>

#include <col/backend.hpp>

namespace col {

Channel::~Channel() = default;
std::shared_ptr<void> Channel::allocate(std::size_t /*bytes*/, const Exchange& /*exchange*/) {
  return nullptr;
}

void Channel::check(const Request& /*request*/) const {}

Ticket Channel::start_native(const Request& request, WaitContext& /*wait*/) {
  throw Error(ErrorCode::internal,
              std::string(to_string(request.collective)) + ": this channel has nothing that it could start");
}

BackendFactory::~BackendFactory() = default;
Device::Type BackendFactory::device() const {
  return Device::Type::cpu;
}

}  // namespace col
