// The findings of a tool, before they take a form: tables, charts, facts and notes. There is one renderer for each
// form: report_text.cpp for terminals, report_csv.cpp, report_html.cpp for browsers, and report_svg.cpp, which draws
// all charts. JSON is not one of them: it is made of what was measured (`fields()`), not of what is said about it. All
// functions are pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/table.hpp"

namespace col::tools {

// ---- Charts ---------------------------------------------------------------------------------------------------------

// A value with its interval; the ends are NaN where there is none.
struct ChartPoint {
  double x = 0;
  double y = 0;
  double low = 0, high = 0;
};

struct Series {
  std::string name;                     // what tells it from the others
  std::vector<ChartPoint> points = {};  // by ascending x
  std::vector<ChartPoint> bound = {};   // what is possible at best, where that is known
};

// Numbers as axes and points have them: "50 ms", "52.1 ms".
using NumberText = std::string (*)(double);

struct Chart {
  std::string title;  // of its values: "Bus bandwidth, GB/s"
  NumberText tick, text;
  std::vector<Series> series = {};
};

// Charts of the same series beside each other. Where all points have one x, they are bars; otherwise curves over x, on
// logarithmic axes.
struct Figure {
  std::string title;     // "allreduce"
  std::string subtitle;  // what all series share
  std::string x_title;   // "size in bytes"
  NumberText x_text;
  std::vector<Chart> charts = {};  // the first one has all series

  bool has_bars() const;
};

// ---- Reports --------------------------------------------------------------------------------------------------------

struct Fact {
  std::string name, value;
  std::string command = {};  // a line for a shell that belongs to it
};

// A part of a report, or all of it. Its members come in this order in every form; most forms leave some out.
struct Part {
  std::string title = {};
  std::vector<Note> lead = {};
  std::vector<Fact> facts = {};
  std::vector<Table> tables = {};
  std::vector<Figure> figures = {};
  std::string command = {};  // a line for a shell
  std::vector<Note> notes = {};
};

struct Report {
  std::string tool;
  Note verdict = {};  // in one line, first of all
  Part head = {};
  std::vector<Part> parts = {};
  std::string data_name = {}, data = {};  // JSON for programs that read the page
};

// Whole lines for a terminal: all but facts, figures and commands. `mark` stands before all lines that are neither
// titles nor rows. Tables are no wider than `style.columns`: what there is no room for is named below.
std::string report_text(const Part& part, Style style, std::string_view mark = "# ");

// As RFC 4180 has it: lines end with CRLF, and a field with a comma, a quote or a line end in it is quoted.
std::string csv_table(const Table& table);

// A complete HTML document in UTF-8 that refers to nothing outside of itself and runs no scripts: the head, a list of
// contents, the parts. Light and dark, for wide windows and narrow ones, for readers who use a keyboard, a screen
// reader, or cannot tell the colours.
std::string html_page(const Report& report);

// A complete SVG document on white that refers to nothing and runs nothing: all figures of a part, and its notes.
std::string svg_document(const Part& part);

// ---- Pieces of the renderer of charts, for that of pages ------------------------------------------------------------

// Any text, on one line.
std::string line_markup(std::string_view text);
// One chart as an element of class "chart". It has a title and a description for those who cannot see it.
std::string chart_element(const Figure& figure, const Chart& chart, std::string_view attributes = "");
// Shows how a series looks, for a key.
std::string key_element(std::size_t series, std::string_view attributes = "");
// The rules of style that both need, in these colours.
std::string chart_style(std::string_view text, std::string_view faint, std::string_view line);

}  // namespace col::tools
