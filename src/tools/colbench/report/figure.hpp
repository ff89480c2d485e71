// What a plot of a run shows, before anything is drawn. All of it pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "colbench/results.hpp"

namespace col::colbench {

// A median with its interval; the ends are NaN where too few launches were made for one.
struct CurvePoint {
  double bytes = 0;
  double value = 0;
  double low = 0, high = 0;
};

struct BoundPoint {
  double bytes = 0;
  double value = 0;
};

struct Curve {
  std::string name;                    // clean: what tells it from the other curves
  std::vector<CurvePoint> time;        // seconds; by ascending size
  std::vector<CurvePoint> bandwidth;   // bus bandwidth in GB/s; without the points that have none
  std::vector<BoundPoint> time_bound;  // without the points that have none
  std::vector<BoundPoint> bandwidth_bound;
};

// The curves of one operation.
struct PlotPanel {
  std::string title;     // "allreduce"
  std::string subtitle;  // "shm, float32, sum, 2 ranks": what all of its curves share
  std::vector<Curve> curves;
};

struct Figure {
  std::vector<PlotPanel> panels;
  std::vector<std::string> notes;  // clean lines: what was left out, where it was measured
};

// One panel for each operation that has a size, in the order in which they come. A curve joins cells that differ in
// nothing but their size. Cells that are invalid or not measured are left out, and counted in a note.
Figure figure_of(const Results& results);

}  // namespace col::colbench
