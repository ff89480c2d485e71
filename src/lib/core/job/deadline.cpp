#include <algorithm>

#include <col/job.hpp>

namespace col {

Deadline Deadline::after(Duration budget) noexcept {
  budget = std::clamp(budget, Duration::zero(), kMaxBudget);
  return Deadline(Clock::now() + budget, budget);
}

Duration Deadline::remaining() const noexcept {
  return std::max<Duration>(at_ - Clock::now(), Duration::zero());
}

}  // namespace col
