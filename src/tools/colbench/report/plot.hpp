// The results as curves: time and bus bandwidth over size.
#pragma once

#include <string>

#include "colbench/results.hpp"

namespace col::colbench {

// An SVG document on white: for each operation two panels on logarithmic axes, with the medians' intervals as bands and
// the physical bounds as dashed lines. It refers to nothing and runs nothing. gnuplot draws it. Throws
// tools::UsageError when there is no gnuplot, or no result with a size; tools::WriteError when gnuplot fails or takes
// more than 60 seconds; std::system_error.
std::string plot_svg(const Results& results);
// The same as an element of a page, as wide as the page lets it be. Its greys are the page's custom properties --text,
// --faint and --line.
std::string plot_element(const Results& results);

// Draws into the file at `path`: an SVG document or a PNG image, by the ending of its name. Throws what plot_svg() and
// tools::write_file() throw, and tools::UsageError for any other ending.
void write_plot(const Results& results, const std::string& path);
// Throws the tools::UsageError or tools::WriteError that write_plot() would, as far as can be known before there are
// results: for --plot, before anything is measured. Changes nothing.
void check_plot(const std::string& path);

}  // namespace col::colbench
