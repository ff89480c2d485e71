// Bounded staleness: which workers of an asynchronous parameter server may go on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace digits {

// Counts the steps that each worker has ended. A worker may begin its next step when it has ended at most `staleness`
// steps more than the slowest.
class Clocks {
 public:
  explicit Clocks(std::size_t workers, std::uint64_t staleness);

  // This worker has ended a step. Returns the workers that may go on now and could not before, this one among them or
  // not. Requires: the worker could go on.
  std::vector<std::size_t> end_step(std::size_t worker);

  // Steps that it has ended.
  std::uint64_t steps(std::size_t worker) const { return steps_[worker]; }
  std::uint64_t slowest() const;
  // The most steps that a worker was ahead of the slowest when it went on.
  std::uint64_t largest_lead() const noexcept { return largest_lead_; }

 private:
  std::uint64_t staleness_;
  std::uint64_t largest_lead_ = 0;
  std::vector<std::uint64_t> steps_;
  std::vector<std::size_t> waiting_;  // the longest first
};

}  // namespace digits
