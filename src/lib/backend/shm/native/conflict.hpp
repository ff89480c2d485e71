// Tells that the ranks of a group have not made the same call. Those who compare the calls in words
// can say more about it: they get time for that.
#pragma once

#include <cstdint>
#include <optional>

#include <col/channel.hpp>
#include <col/error.hpp>

#include "backend/shm/native/waiter.hpp"
#include "backend/shm/segment/layout.hpp"
#include "core/clock/clock.hpp"

namespace col::shm_backend {

class Conflict {
 public:
  // Requires: the arguments outlive it.
  Conflict(const Area& area, int rank, int size, Attendant& attendant)
      : area_(area), rank_(rank), size_(size), attendant_(attendant) {}

  // A rank that does not wait has found it.
  void set(const OtherCall& found);
  explicit operator bool() const noexcept { return found_.has_value(); }
  const OtherCall& operator*() const noexcept { return *found_; }

  // `number`: of the call. Throws the mismatch once the time for others' words is over. Requires: one was set.
  void look(std::uint64_t number);
  // Throws the mismatch between this rank's call and that of `peer`, as others' words tell it if they come in time.
  [[noreturn]] void tell(std::uint64_t number, int peer, WaitContext& wait) const;

 private:
  Error mismatch_with(std::uint64_t number, int peer) const;
  int odd_one(std::uint64_t number) const;
  bool all_have_called(std::uint64_t number) const;

  const Area& area_;
  const int rank_, size_;
  Attendant& attendant_;
  std::optional<OtherCall> found_;
  bool all_called_ = false;
  Deadline words_ = Deadline::of({});  // until when that is left to others
};

}  // namespace col::shm_backend
