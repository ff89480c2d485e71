// A user's call that consists of other calls: reports name the user's call.
#pragma once

#include <string_view>
#include <utility>

#include "core/fast_tls.hpp"

namespace col::group {

class Composite {
 public:
  // Holds from now on, for the calls of this thread. An outer one that has not ended wins. `name` must live forever.
  explicit Composite(std::string_view name) noexcept
      : outer_(std::exchange(current_, current_.empty() ? name : current_)) {}
  ~Composite() { current_ = outer_; }
  Composite(const Composite&) = delete;
  Composite& operator=(const Composite&) = delete;

  // Empty if there is none.
  static std::string_view current() noexcept { return current_; }

 private:
  COL_FAST_TLS static inline thread_local std::string_view current_;

  std::string_view outer_;
};

}  // namespace col::group
