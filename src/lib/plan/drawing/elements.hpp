// The content of one rank's buffers, element by element, as runs of elements with equal history.
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <span>
#include <vector>

#include <col/plan.hpp>

#include "plan/drawing/trace.hpp"

namespace col::plan::drawing {

class Elements {
 public:
  explicit Elements(int rank) : rank_(rank) {}

  std::vector<Fragment> read(const Slice& slice) const;
  // Requires: the parts have slice.count elements together.
  void write(const Slice& slice, std::span<const Fragment> parts);

 private:
  struct Run {
    std::size_t end;
    Fragment part;
  };
  using Runs = std::map<std::size_t, Run>;  // by their first element
  static void cut(Runs& runs, std::size_t at);

  int rank_;
  std::array<Runs, 4> runs_;
};

// left op right.
std::vector<Fragment> combined(std::span<const Fragment> left, std::span<const Fragment> right);

}  // namespace col::plan::drawing
