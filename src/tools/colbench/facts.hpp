// What a reader of a result must know about its origin.
#pragma once

#include <cstdint>

#include "colbench/results.hpp"

namespace col::colbench {

// Fills in what this host says about itself; what cannot be read stays empty. From the environment it takes only the
// names in a list, because the environment may hold secrets.
void describe_host(RunFacts& facts);

// What the whole machine has done between two looks at it.
class HostWatch {
 public:
  HostWatch();
  // One line for everything that may have spoiled the measurement: work of other processes, time stolen by a
  // hypervisor, more ranks than cores, a clock that changes its speed.
  std::vector<std::string> warnings(const RunFacts& facts) const;

 private:
  struct Times {
    double busy = 0, stolen = 0, all = 0;  // in seconds of one core
    double own = 0;                        // of this process and its children
  };
  static Times look();
  Times before_;
};

}  // namespace col::colbench
