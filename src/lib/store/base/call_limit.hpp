// A time limit for the store calls of one thread. A caller uses it in the middle of a wait of its own: a store that has
// stopped answering must not delay the deadline of that wait. The limit also holds through wrappers of stores.
#pragma once

#include <optional>

#include <col/job.hpp>

namespace col::store {

class CallLimit {
 public:
  // Limits all calls of this thread together, from now until the end of the object. An outer limit that ends sooner
  // stays in force.
  explicit CallLimit(Duration budget) noexcept : CallLimit(Deadline::after(budget)) {}
  // The same, until that of a wait, whose time a timeout then names.
  explicit CallLimit(Deadline deadline) noexcept : outer_(limit) { limit = bound(deadline); }
  ~CallLimit() { limit = outer_; }
  CallLimit(const CallLimit&) = delete;
  CallLimit& operator=(const CallLimit&) = delete;

  // The sooner of `deadline` and the limit of this thread.
  static Deadline bound(Deadline deadline) noexcept { return limit && limit->at() < deadline.at() ? *limit : deadline; }

 private:
  static inline thread_local std::optional<Deadline> limit;
  std::optional<Deadline> outer_;
};

}  // namespace col::store
