#include <col/backend.hpp>

namespace col {

Channel::~Channel() = default;
BackendFactory::~BackendFactory() = default;

}  // namespace col
