// The results of a run as a table, as CSV, as a page and as curves.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "colbench/cell/results.hpp"
#include "colbench/report/figure.hpp"
#include "common/noted_table.hpp"
#include "common/style.hpp"

namespace col::colbench {

inline constexpr std::size_t kTableColumns = 120;  // unless a terminal has fewer

// The rows, aligned, in `columns` columns: what is equal in all of them is said once above. Columns that there is
// no room for are left out and named. All other lines begin with '#': what ran and on what, above; why a row is invalid
// or was not measured, warnings, and how the run ended, below. `legend` adds a line for every column. Whole lines, each
// with its newline. Pure.
std::string table_report(const Results& results, tools::Style style, bool legend, std::size_t columns = kTableColumns);

// ---- CSV, for spreadsheets and data frames --------------------------------------------------------------------------

// A header line and a row for every cell, as RFC 4180 has it: lines end with CRLF, a field with a comma, a quote or a
// line end in it is quoted. Times are in nanoseconds with at most one decimal, bandwidths in bytes per second; what is
// not there is empty. Pure.
std::string csv_results(const Results& results);

// ---- A page for a browser -------------------------------------------------------------------------------------------

// What a command has to say beside the rows, in the words of its own report on the terminal.
struct PageExtras {
  std::string subject = {};               // of the page; empty: the operations
  std::string title = {};                 // of the section with the tables
  std::vector<std::string> caveats = {};  // sentences that stand above the tables
  std::vector<tools::NotedTable> tables = {};
  RowName name = {};  // of curves
};

// A complete HTML document in UTF-8 that refers to nothing outside of itself and runs no scripts: the results in words,
// a list of contents, the command's tables, a figure for what is compared, every row with all its statistics, the
// machine, the command, and json_results() in a <script type="application/json">. Pure.
std::string html_report(const Results& results, const PageExtras& extras = {});

// The figures of that page: for every panel, charts of time and bandwidth over size with a key, and bars where there is
// one size only. Pure.
std::string charts_section(const Figure& figure);

// ---- Curves ---------------------------------------------------------------------------------------------------------

// An SVG document on white: for each operation two panels on logarithmic axes, with the medians' intervals as bands and
// the physical bounds as dashed lines. It refers to nothing and runs nothing. gnuplot draws it. Throws
// tools::UsageError when there is no gnuplot, or no result with a size; tools::WriteError when gnuplot fails or takes
// more than 60 seconds; std::system_error.
std::string plot_svg(const Results& results);

// Draws into the file at `path`: an SVG document or a PNG image, by the ending of its name. Throws what plot_svg() and
// tools::write_file() throw, and tools::UsageError for any other ending.
void write_plot(const Results& results, const std::string& path);
// Throws the tools::UsageError or tools::WriteError that write_plot() would, as far as can be known before there are
// results: for --plot, before anything is measured. Changes nothing.
void check_plot(const std::string& path);

// ---- gnuplot as a child process -------------------------------------------------------------------------------------

// Whether `gnuplot` is on PATH.
bool has_gnuplot();
// What to say when it is not.
std::string no_gnuplot_text();

// What gnuplot writes to its stdout for `script`. It reads the script from its stdin and no settings of the user's; no
// shell is involved. Throws tools::UsageError when there is no gnuplot, tools::WriteError when it fails or
// has not ended by the deadline (it is killed then), std::system_error when no process can be started.
std::string run_gnuplot(std::string_view script, std::chrono::milliseconds deadline = std::chrono::seconds(60));

}  // namespace col::colbench
