// The script for gnuplot. All functions are pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "colbench/report/figure.hpp"

namespace col::colbench {

enum class PlotFormat : std::uint8_t {
  svg,  // on white
  png,  // on white, two pixels for one
};

// The greys of a plot.
inline constexpr std::string_view kTextColour = "#1b1f24", kFaintColour = "#59616b", kLineColour = "#d8dde3";

// A ":Bold" after it asks for bold letters.
inline constexpr std::string_view kPlotFont = "Helvetica";

// A script for gnuplot 5 that writes the drawing to its stdout. All data are in it; names are quoted so that gnuplot
// runs nothing of them. Requires: at least one panel.
std::string plot_script(const Figure& figure, PlotFormat format);

}  // namespace col::colbench
