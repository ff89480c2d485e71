#include "backend/shm/one_copy.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <span>
#include <system_error>

#include "backend/shm/native/process_memory.hpp"
#include "core/log.hpp"

namespace col::shm_backend {

bool OneCopy::begin(const void* message, const Offer& offer, std::uint64_t bytes, const Tuning& tuning) {
  if (reach_ == Reach::unknown) {
    std::uint64_t seen = 0;
    pid_ = offer.pid;
    const bool is_read = read_memory(offer.pid, offer.proof_at, &seen, sizeof seen) == sizeof seen;
    reach_ = is_read && seen == offer.proof ? Reach::yes : Reach::no;
    if (reach_ == Reach::no)
      core::log::info("messages go through shared memory: process {} cannot be read through the kernel ({})", offer.pid,
                      is_read ? "another process is there" : std::generic_category().message(errno));
  }
  if (reach_ == Reach::no) return false;
  if (tuning.copies == KernelCopies::on) return true;
  if (timed_ != nullptr) return turn_.by_kernel;  // several at a time say nothing of one
  if (trials_ == nullptr) trials_ = std::make_unique<KernelTrials>(1, tuning.before_trials);
  turn_ = trials_->next({.shape = KernelShape::vector_of_one, .bytes = static_cast<std::size_t>(bytes)});
  if (turn_.decides) {
    Presence own;
    own.times = trials_->told();
    turn_.by_kernel = trials_->decide(std::span(&own, 1));
  }
  if (turn_.is_timed) {
    timed_ = message;
    began_ = core::Clock::now();
  }
  return turn_.by_kernel;
}

void OneCopy::ended(const void* message) noexcept {
  if (message != timed_) return;
  timed_ = nullptr;
  const auto took = std::chrono::duration_cast<std::chrono::nanoseconds>(core::Clock::now() - began_).count();
  const auto time = static_cast<std::uint32_t>(std::clamp<std::int64_t>(took, 0, WayTimes::kUnknown - 1));
  if (turn_.by_kernel)
    trials_->took({.kernel = time, .meeting = 0});
  else
    trials_->took({.meeting = 0, .slots = time});
}

std::size_t OneCopy::read(std::uint64_t from, void* to, std::uint64_t bytes) noexcept {
  const ssize_t got =
      read_memory(pid_, from, to, static_cast<std::size_t>(std::min<std::uint64_t>(bytes, kReadAtOnce)));
  if (got > 0) return static_cast<std::size_t>(got);
  reach_ = Reach::no;
  return 0;
}

}  // namespace col::shm_backend
