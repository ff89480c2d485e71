#include "backend/shm/operations.hpp"

namespace col::shm_backend {
namespace {

// A ticket is the entry's index below its generation, which changes at every use.
constexpr int kIndexBits = 32;
constexpr std::uint64_t kIndexMask = (std::uint64_t{1} << kIndexBits) - 1;
constexpr std::uint64_t kNextGeneration = std::uint64_t{1} << kIndexBits;

}  // namespace

Operations::Operations(std::size_t reserved) {
  while (entries_.size() < reserved) grow();
}

void Operations::grow() {
  Operation& fresh = entries_.emplace_back();
  fresh.ticket = entries_.size() - 1;
  remove(fresh);
}

Operation& Operations::add() {
  if (free_ == nullptr) grow();
  Operation& operation = *free_;
  free_ = operation.next;
  const std::uint64_t ticket = operation.ticket + kNextGeneration;
  operation = {};
  operation.ticket = ticket;
  operation.state = Operation::State::posted;
  return operation;
}

Operation* Operations::find(std::uint64_t ticket) noexcept {
  const std::uint64_t index = ticket & kIndexMask;
  if (index >= entries_.size()) return nullptr;
  Operation& operation = entries_[index];
  return operation.ticket == ticket && operation.state != Operation::State::unused ? &operation : nullptr;
}

void Operations::remove(Operation& operation) noexcept {
  operation.state = Operation::State::unused;
  operation.next = free_;
  free_ = &operation;
}

}  // namespace col::shm_backend
