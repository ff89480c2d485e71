#include "store/base/call_limit.hpp"

namespace col::store {
namespace {

thread_local std::optional<Deadline> limit;

}  // namespace

CallLimit::CallLimit(Duration budget) noexcept : outer_(limit) {
  limit = bound(Deadline::after(budget));
}

CallLimit::~CallLimit() {
  limit = outer_;
}

Deadline CallLimit::bound(Deadline deadline) noexcept {
  return limit && limit->at() < deadline.at() ? *limit : deadline;
}

}  // namespace col::store
