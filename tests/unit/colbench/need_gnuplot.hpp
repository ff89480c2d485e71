// For tests that look at what gnuplot has drawn.
#pragma once

#include "colbench/report/gnuplot.hpp"
#include "support/catch.hpp"

namespace col::colbench {

inline void need_gnuplot() {
  INFO("install gnuplot-nox");
  REQUIRE(has_gnuplot());
}

}  // namespace col::colbench
