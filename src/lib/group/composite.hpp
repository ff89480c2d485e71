// A call of the user's that is made of others: reports name what the user has called.
#pragma once

#include <string_view>
#include <utility>

namespace col::group {

class Composite {
 public:
  // From now on, for the calls of this thread. One around it that has not ended stands. `name` lives for ever.
  explicit Composite(std::string_view name) noexcept
      : outer_(std::exchange(current_, current_.empty() ? name : current_)) {}
  ~Composite() { current_ = outer_; }
  Composite(const Composite&) = delete;
  Composite& operator=(const Composite&) = delete;

  // Empty: none.
  static std::string_view current() noexcept { return current_; }

 private:
  static inline thread_local std::string_view current_;

  std::string_view outer_;
};

}  // namespace col::group
