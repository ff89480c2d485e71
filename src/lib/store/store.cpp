#include <col/store.hpp>

namespace col {

Store::~Store() = default;

std::string Store::wait_for(std::string_view key, Duration timeout) {
  WaitContext wait_context(Deadline::after(timeout));
  return wait(key, wait_context);
}

}  // namespace col
