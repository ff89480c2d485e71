#include "colbench/report/plot.hpp"

#include <string_view>

#include <fmt/format.h>

#include "colbench/report/figure.hpp"
#include "colbench/report/gnuplot.hpp"
#include "colbench/report/plot_script.hpp"
#include "common/command_line.hpp"
#include "common/text.hpp"
#include "common/write_file.hpp"

namespace col::colbench {
namespace {

PlotFormat format_of(const std::string& path) {
  if (path.ends_with(".svg")) return PlotFormat::svg;
  if (path.ends_with(".png")) return PlotFormat::png;
  throw tools::UsageError(
      fmt::format("--plot: '{}' is no name for a drawing; end it with .svg or .png", tools::one_line(path)));
}

std::string draw(const Results& results, PlotFormat format) {
  const Figure figure = figure_of(results);
  if (figure.panels.empty()) {
    throw tools::UsageError("there is nothing to draw: no operation with a size was measured and found good");
  }
  return run_gnuplot(plot_script(figure, format));
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

// gnuplot's SVG knows no bold letters, no second choice of a font, and one title.
std::string corrected(std::string svg, std::string_view title) {
  constexpr std::string_view kFonts = "Helvetica, Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif";
  replace_all(svg, fmt::format("font-family=\"{}:Bold\"", kPlotFont),
              fmt::format("font-family=\"{}\" font-weight=\"bold\"", kFonts));
  replace_all(svg, fmt::format("font-family=\"{}\"", kPlotFont), fmt::format("font-family=\"{}\"", kFonts));
  replace_all(svg, "<title>Gnuplot</title>", title);
  return svg;
}

// gnuplot writes a colour as "rgb(27,31,36)", and as "rgb( 27,  31,  36)".
void replace_colour(std::string& svg, std::string_view colour, std::string_view with) {
  const auto part = [&](std::size_t at) { return std::stoi(std::string(colour.substr(at, 2)), nullptr, 16); };
  const int red = part(1), green = part(3), blue = part(5);
  replace_all(svg, fmt::format("rgb({},{},{})", red, green, blue), with);
  replace_all(svg, fmt::format("rgb({:3}, {:3}, {:3})", red, green, blue), with);
}

}  // namespace

std::string plot_svg(const Results& results) {
  return corrected(draw(results, PlotFormat::svg), "<title>colbench: time and bus bandwidth over size</title>");
}

std::string plot_element(const Results& results) {
  std::string svg = corrected(draw(results, PlotFormat::page), "");
  const std::size_t start = svg.find("<svg");
  if (start == std::string::npos) throw tools::WriteError("gnuplot has drawn no SVG");
  svg.erase(0, start);
  replace_colour(svg, kTextColour, "var(--text)");
  replace_colour(svg, kFaintColour, "var(--faint)");
  replace_colour(svg, kLineColour, "var(--line)");
  return svg;
}

void write_plot(const Results& results, const std::string& path) {
  const PlotFormat format = format_of(path);
  tools::write_file(path, format == PlotFormat::svg ? plot_svg(results) : draw(results, format));
}

void check_plot(const std::string& path) {
  format_of(path);
  if (!has_gnuplot()) throw tools::UsageError("--plot: " + no_gnuplot_text());
  tools::check_writable(path);
}

}  // namespace col::colbench
