#include <col/backend.hpp>

namespace col {

Channel::~Channel() = default;
std::shared_ptr<void> Channel::allocate(std::size_t /*bytes*/, const Exchange& /*exchange*/) {
  return nullptr;
}

BackendFactory::~BackendFactory() = default;
Device::Type BackendFactory::device() const {
  return Device::Type::cpu;
}

}  // namespace col
