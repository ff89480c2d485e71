// A bound on what the calls of stores by one thread may take, for who asks in the middle of a wait of its own: a store
// that has stopped answering must not hold up the deadline of that wait. It holds whatever wrappers the calls go
// through.
#pragma once

#include <optional>

#include <col/job.hpp>

namespace col::store {

class CallLimit {
 public:
  // From now on, for all calls of this thread together, until the object's end. One around it that ends sooner stands.
  explicit CallLimit(Duration budget) noexcept;
  ~CallLimit();
  CallLimit(const CallLimit&) = delete;
  CallLimit& operator=(const CallLimit&) = delete;

  // The sooner of `deadline` and what holds for this thread.
  static Deadline bound(Deadline deadline) noexcept;

 private:
  std::optional<Deadline> outer_;
};

}  // namespace col::store
