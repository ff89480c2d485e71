#include <utility>

#include "group/state.hpp"

namespace col {

Work::Work(std::shared_ptr<Handle> handle) : handle_(std::move(handle)) {}

void Work::wait() {
  if (handle_) handle_->state->wait(*handle_->pending, Duration::zero());
}

bool Work::wait_for(Duration budget) {
  if (!handle_) return true;
  if (budget <= Duration::zero()) return test();
  return handle_->state->wait(*handle_->pending, budget);
}

bool Work::test() {
  return !handle_ || handle_->state->test(*handle_->pending);
}

std::optional<Error> Work::error() const {
  return handle_ ? handle_->state->error_of(*handle_->pending) : std::nullopt;
}

int Work::source() const {
  return handle_ ? handle_->state->source_of(*handle_->pending) : -1;
}

}  // namespace col
