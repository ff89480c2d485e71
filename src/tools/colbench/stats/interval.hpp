// The interval of a quantity.
#pragma once

namespace col::colbench {

struct Interval {
  double low = 0;
  double high = 0;
  bool operator==(const Interval&) const = default;
};

}  // namespace col::colbench
