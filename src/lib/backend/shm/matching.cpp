#include "backend/shm/matching.hpp"

#include <bit>
#include <utility>

namespace col::shm_backend {
namespace {

// A ticket is the entry's index below its generation, which changes at every use.
constexpr int kIndexBits = 32;
constexpr std::uint64_t kIndexMask = (std::uint64_t{1} << kIndexBits) - 1;
constexpr std::uint64_t kNextGeneration = std::uint64_t{1} << kIndexBits;

constexpr int kSmallestBits = 6;

}  // namespace

Operations::Operations(std::size_t reserved) {
  while (entries_.size() < reserved) grow();
}

void Operations::grow() {
  Operation& fresh = entries_.emplace_back();
  fresh.ticket = entries_.size() - 1;
  ++used_;
  remove(fresh);
}

Operation& Operations::add() {
  if (free_ == nullptr) grow();
  Operation& operation = *free_;
  free_ = operation.next;
  ++used_;
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
  --used_;
  operation.state = Operation::State::unused;
  operation.next = free_;
  free_ = &operation;
}

std::size_t UnexpectedPool::class_of(std::size_t data_bytes) noexcept {
  if (data_bytes == 0) return 0;
  const auto bits = std::bit_width(data_bytes - 1);
  return bits <= kSmallestBits ? 1 : static_cast<std::size_t>(bits - kSmallestBits) + 1;
}

std::size_t UnexpectedPool::capacity_of(std::size_t size_class) noexcept {
  return size_class == 0 ? 0 : std::size_t{1} << (kSmallestBits + size_class - 1);
}

void UnexpectedPool::reserve(std::size_t messages, std::size_t data_bytes) {
  for (std::size_t i = 0; i < messages; ++i) give_back(make(class_of(data_bytes)));
}

Unexpected& UnexpectedPool::get(std::size_t data_bytes) {
  const std::size_t fitting = class_of(data_bytes);
  for (std::size_t size_class = fitting; size_class < kClasses; ++size_class) {
    Unexpected* const kept = free_[size_class];
    if (kept == nullptr) continue;
    free_[size_class] = std::exchange(kept->next, nullptr);
    kept_bytes_ -= kept->capacity;
    return *kept;
  }
  return make(fitting);
}

Unexpected& UnexpectedPool::make(std::size_t size_class) {
  const std::size_t capacity = capacity_of(size_class);
  std::unique_ptr<std::byte[]> data(capacity > 0 ? new std::byte[capacity] : nullptr);
  if (free_[0] == nullptr) free_[0] = &entries_.emplace_back();
  Unexpected& message = *free_[0];
  free_[0] = std::exchange(message.next, nullptr);
  message.data = std::move(data);
  message.capacity = capacity;
  return message;
}

void UnexpectedPool::give_back(Unexpected& message) noexcept {
  if (kept_bytes_ + message.capacity > kKeptBytes) {
    message.data.reset();
    message.capacity = 0;
  }
  kept_bytes_ += message.capacity;
  Unexpected*& free = free_[class_of(message.capacity)];
  message.next = free;
  free = &message;
}

}  // namespace col::shm_backend
