#include "strategies/clocks.hpp"

#include <algorithm>
#include <iterator>

namespace digits {

Clocks::Clocks(std::size_t workers, std::uint64_t staleness) : staleness_(staleness), steps_(workers) {}

std::uint64_t Clocks::slowest() const {
  return *std::min_element(steps_.begin(), steps_.end());
}

std::vector<std::size_t> Clocks::end_step(std::size_t worker) {
  ++steps_[worker];
  waiting_.push_back(worker);
  const std::uint64_t slowest = this->slowest();
  const auto stay = std::stable_partition(waiting_.begin(), waiting_.end(),
                                          [&](std::size_t w) { return steps_[w] - slowest <= staleness_; });
  std::vector<std::size_t> free(waiting_.begin(), stay);
  waiting_.erase(waiting_.begin(), stay);
  for (const std::size_t w : free) largest_lead_ = std::max(largest_lead_, steps_[w] - slowest);
  return free;
}

}  // namespace digits
