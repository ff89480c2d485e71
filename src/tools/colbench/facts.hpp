// What a reader of a result has to know about where it comes from.
#pragma once

#include <cstdint>

#include "colbench/results.hpp"

namespace col::colbench {

// Fills in what this host says of itself; what cannot be read stays empty. Of the environment, the names in a list of
// its own alone: it may hold secrets.
void describe_host(RunFacts& facts);

// What the whole machine has been doing between two looks at it.
class HostWatch {
 public:
  HostWatch();
  // One line for everything that may have spoilt the measurement: other processes' work, time stolen by a hypervisor,
  // more ranks than cores, a clock that changes its speed.
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
