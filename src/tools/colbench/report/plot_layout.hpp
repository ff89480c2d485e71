// The layout of a plot: axes and the legend. All functions are pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "colbench/report/figure.hpp"

namespace col::colbench {

struct Tick {
  double value;
  std::string label;  // empty: a small one
};

struct Axis {
  double low = 0, high = 0;
  std::vector<Tick> ticks = {};
};

// Logarithmic axes that hold all values. Requires: at least one value, all positive.
Axis size_axis(const std::vector<double>& bytes);
Axis time_axis(const std::vector<double>& seconds);
Axis bandwidth_axis(const std::vector<double>& gigabytes_per_second);

// Everything that a panel's axes must hold.
std::vector<double> sizes_in(const PlotPanel& panel);
std::vector<double> times_in(const PlotPanel& panel);
std::vector<double> bandwidths_in(const PlotPanel& panel);

// Pixels that a text takes in the plot's font, about.
double width_of_text(std::string_view text, double font_size);

// The curves' names in columns of equal width.
struct Legend {
  std::size_t columns = 1, rows = 1;
  double column_width = 0;
};
Legend legend_of(const PlotPanel& panel, double width, double font_size);

// A bound as it is drawn. If several curves have the same bound, it is drawn once.
struct BoundLine {
  std::size_t curve = 0;  // the first that has it
  bool shared = false;    // other curves have it too
};
std::vector<BoundLine> bounds_of(const PlotPanel& panel);

}  // namespace col::colbench
