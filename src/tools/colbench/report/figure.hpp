// What a plot of a run shows, before anything is drawn. All of it pure.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "colbench/cell/results.hpp"

namespace col::colbench {

// A median with its interval; the ends are NaN where too few launches were made for one. A bound has no interval.
struct CurvePoint {
  double bytes = 0;
  double value = 0;
  double low = 0, high = 0;
};

struct Curve {
  std::string name;                    // clean: what tells it from the other curves
  std::vector<CurvePoint> time;        // seconds; by ascending size
  std::vector<CurvePoint> bandwidth;   // bus bandwidth in GB/s; without the points that have none
  std::vector<CurvePoint> time_bound;  // without the points that have none
  std::vector<CurvePoint> bandwidth_bound;
};

// The curves of one operation on one number of ranks: what a reader compares.
struct PlotPanel {
  std::string title;     // "allreduce"; "allreduce, 4 ranks" where it ran on several numbers of ranks
  std::string subtitle;  // "shm, float32, sum, 2 ranks": what all of its curves share
  std::vector<Curve> curves;
};

struct Figure {
  std::vector<PlotPanel> panels;
  std::vector<std::string> notes;  // clean lines: what was left out, where it was measured
};

// What a row is called; empty: by what tells it from the others.
using RowName = std::function<std::string(const CellSpec&)>;

// One panel for each operation that has a size and each number of ranks, in the order in which they come. A curve joins
// cells that differ in nothing but their size. Cells that are invalid or not measured are left out, and counted in a
// note.
Figure figure_of(const Results& results, const RowName& name = {});

// Can be distinguished by people who see colours differently, on white and on black.
inline constexpr std::array<std::string_view, 8> kCurveColours = {"#1a7dbf", "#d55e00", "#009e73", "#c76aa0",
                                                                  "#b8860b", "#3fa3dc", "#8a5bd1", "#7a7f87"};

// ---- Layout ---------------------------------------------------------------------------------------------------------

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
