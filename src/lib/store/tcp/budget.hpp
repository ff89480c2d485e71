// How much memory the server of a TCP store uses for its clients, and which part of it each holds. Used by one thread.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace col::store::tcp {

class Charge;

class Budget {
 public:
  explicit Budget(std::size_t most) noexcept : most_(most) {}
  Budget(const Budget&) = delete;
  Budget& operator=(const Budget&) = delete;

  // Nothing if not enough is left.
  std::optional<Charge> charge(std::size_t bytes) noexcept;
  std::size_t most() const noexcept { return most_; }
  std::size_t used() const noexcept { return used_; }

 private:
  friend class Charge;
  const std::size_t most_;
  std::size_t used_ = 0;
};

// A part of a budget, returned to the budget by the destructor. The budget must outlive it.
class Charge {
 public:
  Charge() = default;
  Charge(Charge&& other) noexcept
      : budget_(std::exchange(other.budget_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  Charge& operator=(Charge&& other) noexcept {
    if (this == &other) return *this;
    give_back();
    budget_ = std::exchange(other.budget_, nullptr);
    bytes_ = std::exchange(other.bytes_, 0);
    return *this;
  }
  ~Charge() { give_back(); }

 private:
  friend class Budget;
  Charge(Budget& budget, std::size_t bytes) noexcept : budget_(&budget), bytes_(bytes) { budget.used_ += bytes; }
  void give_back() noexcept {
    if (budget_ != nullptr) budget_->used_ -= bytes_;
    budget_ = nullptr;
  }

  Budget* budget_ = nullptr;
  std::size_t bytes_ = 0;
};

inline std::optional<Charge> Budget::charge(std::size_t bytes) noexcept {
  if (bytes > most_ - used_) return std::nullopt;
  return Charge(*this, bytes);
}

// Bytes that are charged as long as any object refers to them.
struct ChargedBytes {
  std::string bytes;
  Charge charge;
};
// Shared: a key's value may be replaced or erased while it is being sent.
using SharedBytes = std::shared_ptr<const ChargedBytes>;

}  // namespace col::store::tcp
