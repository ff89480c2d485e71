// Where ranks meet at the end of their program, or after an error, beside the library: as a program's users do, who
// look which ranks are left.
#pragma once

#include <vector>

#include "core/clock/lock.hpp"
#include "simulation/faults.hpp"
#include "simulation/simulator.hpp"

namespace col::test {

class Muster {
 public:
  // `holders`: by rank, the process that has its place now.
  Muster(Simulator& simulator, Truth& truth, const std::vector<int>& holders)
      : simulator_(simulator), truth_(truth), holders_(holders), arrived_(holders.size()) {}

  struct Result {
    std::vector<int> survivors;
    bool is_needed = false;   // some rank has failed, or has ended
    bool can_shrink = false;  // all of them have the world
    bool has_any_failed = false, all_have_world = true;
  };
  // Waits until all ranks have come that have not ended. From then on, nothing goes wrong any more. One that comes
  // later hears the same.
  Result come(int rank, bool failed, bool has_world);

 private:
  void look();

  Simulator& simulator_;
  Truth& truth_;
  const std::vector<int>& holders_;
  core::Mutex mutex_;
  core::Condition changed_;
  std::vector<bool> arrived_;
  Result result_;
  bool is_complete_ = false;
};

}  // namespace col::test
