#include "simulation/muster.hpp"

#include <chrono>
#include <mutex>

namespace col::test {

Muster::Result Muster::come(int rank, bool failed, bool has_world) {
  std::unique_lock lock(mutex_);
  if (is_complete_) return result_;
  arrived_[static_cast<std::size_t>(rank)] = true;
  result_.has_any_failed = result_.has_any_failed || failed;
  result_.all_have_world = result_.all_have_world && has_world;
  for (look(); !is_complete_; look())
    changed_.wait_for(lock, std::chrono::milliseconds(20));  // a killed one says nothing
  return result_;
}

void Muster::look() {
  if (is_complete_) return;
  result_.survivors.clear();
  bool is_any_gone = false;
  for (int rank = 0; rank < static_cast<int>(arrived_.size()); ++rank) {
    const bool is_gone = simulator_.state_of(holders_[static_cast<std::size_t>(rank)]) == core::ProcessCondition::gone;
    is_any_gone = is_any_gone || is_gone;
    if (!is_gone && !arrived_[static_cast<std::size_t>(rank)]) return;
    if (!is_gone) result_.survivors.push_back(rank);
  }
  result_.is_needed = result_.has_any_failed || is_any_gone;
  result_.can_shrink = result_.all_have_world && result_.is_needed;
  truth_.mend();
  is_complete_ = true;
  changed_.notify_all();
}

}  // namespace col::test
