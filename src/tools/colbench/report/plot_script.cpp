#include "colbench/report/plot_script.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <vector>

#include <fmt/format.h>

#include "common/text.hpp"

namespace col::colbench {
namespace {

// Pixels, from the upper left corner.
constexpr double kWidth = 1000, kPageMargin = 18;
constexpr double kTitleHeight = 74, kPlotHeight = 300, kAxisHeight = 54, kLegendRow = 20, kGap = 20, kNoteRow = 17;
constexpr double kFont = 12, kSmallFont = 11, kTitleFont = 17;
struct Span {
  double left, right;
};
constexpr Span kTimeSpan{76, 488}, kBandwidthSpan{562, 974};

constexpr std::array<int, 6> kMarkers = {7, 5, 9, 13, 11, 15};

std::string_view colour_of(std::size_t curve) {
  return kCurveColours[curve % kCurveColours.size()];
}

// Beyond eight curves colours come again, with other markers.
int marker_of(std::size_t curve) {
  return kMarkers[(curve + curve / kCurveColours.size()) % kMarkers.size()];
}

// Within single quotes, gnuplot takes everything unchanged except this quote. So our texts contain none: gnuplot's own
// way to write one does not work everywhere. A back quote would begin a command elsewhere.
std::string quoted(std::string_view text) {
  std::string result = "'";
  for (const char letter : tools::one_line(text)) {
    if (letter == '\'' || letter == '`') {
      result += "’";
    } else {
      result += letter;
    }
  }

  return result + "'";
}

double height_of(const PlotPanel& panel) {
  const Legend legend = legend_of(panel, kWidth - 2 * kPageMargin, kFont);
  return kTitleHeight + kPlotHeight + kAxisHeight + kLegendRow * static_cast<double>(legend.rows) + kGap;
}

// What may be cut off below is no longer than a line.
std::string fitted(std::string_view text, double font_size) {
  const double room = kWidth - 2 * kPageMargin;
  if (width_of_text(text, font_size) <= room) return std::string(text);
  const double letters = room / width_of_text("x", font_size);
  return std::string(tools::cut(text, static_cast<std::size_t>(letters) - 1)) + "…";
}

std::string data_name(std::size_t panel, std::size_t curve, std::string_view kind) {
  return fmt::format("$p{}c{}{}", panel, curve, kind);
}

class Script {
 public:
  Script(const Figure& figure, PlotFormat format) : figure_(figure), format_(format) {
    height_ = kPageMargin + kNoteRow * static_cast<double>(figure.notes.size() + 1);
    for (const PlotPanel& panel : figure.panels) height_ += height_of(panel);
  }

  std::string text() {
    add_data();
    begin();
    double top = 0;
    for (std::size_t i = 0; i < figure_.panels.size(); ++i) {
      add_panel(i, top);
      top += height_of(figure_.panels[i]);
    }
    out_ += "unset multiplot\n";
    return std::move(out_);
  }

 private:
  template <typename... Values>
  void add(fmt::format_string<Values...> format, Values&&... values) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Values>(values)...);
    out_ += '\n';
  }

  double x(double pixels) const { return pixels / kWidth; }
  double y(double pixels) const { return 1 - pixels / height_; }

  void begin() {
    add("set encoding utf8");
    if (format_ == PlotFormat::png) {
      add("set terminal pngcairo noenhanced size {:.0f},{:.0f} font '{},{}' fontscale 1.5 linewidth 2 pointscale 2 "
          "background '#ffffff'",
          2 * kWidth, 2 * height_, kPlotFont, kFont);
    } else {
      add("set terminal svg noenhanced size {:.0f},{:.0f} fixed font '{},{}' linewidth 1 background '#ffffff'", kWidth,
          height_, kPlotFont, kFont);
    }
    add("set multiplot");
    add("unset key");
    add("set border 3 lw 1 lc rgb '{}'", kLineColour);
    add("set tics nomirror out scale 0.6,0.3 textcolor rgb '{}'", kFaintColour);
    add("set grid xtics ytics lt 1 lw 0.7 lc rgb '{}', lt 1 lw 0.7 lc rgb '{}'", kLineColour, kLineColour);
  }

  void add_data() {
    for (std::size_t p = 0; p < figure_.panels.size(); ++p) {
      const auto& curves = figure_.panels[p].curves;
      for (std::size_t c = 0; c < curves.size(); ++c) {
        add_points(data_name(p, c, "t"), curves[c].time);
        add_points(data_name(p, c, "b"), curves[c].bandwidth);
        add_bound(data_name(p, c, "tl"), curves[c].time_bound);
        add_bound(data_name(p, c, "bl"), curves[c].bandwidth_bound);
      }
    }
  }

  // A missing interval is one without width: the band closes there.
  void add_points(std::string_view name, const std::vector<CurvePoint>& points) {
    if (points.empty()) return;
    add("{} << EOD", name);
    for (const CurvePoint& point : points) {
      const bool known = point.low > 0 && std::isfinite(point.high);
      add("{:.10g} {:.10g} {:.10g} {:.10g}", point.bytes, point.value, known ? point.low : point.value,
          known ? point.high : point.value);
    }
    add("EOD");
  }

  void add_bound(std::string_view name, const std::vector<CurvePoint>& points) {
    if (points.empty()) return;
    add("{} << EOD", name);
    constexpr double kReach = 1.3;  // a single one is a short line
    if (points.size() == 1) {
      add("{:.10g} {:.10g}", points[0].bytes / kReach, points[0].value);
      add("{:.10g} {:.10g}", points[0].bytes * kReach, points[0].value);
    } else {
      for (const CurvePoint& point : points) add("{:.10g} {:.10g}", point.bytes, point.value);
    }
    add("EOD");
  }

  void add_panel(std::size_t number, double top) {
    const PlotPanel& panel = figure_.panels[number];
    const auto bandwidths = bandwidths_in(panel);
    add_label(panel.title, kPageMargin, top + 24, kTitleFont, kTextColour, true);
    add_label(fitted(panel.subtitle, kFont), kPageMargin, top + 43, kFont, kFaintColour);
    add_label("Time of one operation, median", kPageMargin, top + 64, kFont, kTextColour);
    add_label(bandwidths.empty() ? "No bus bandwidth: nothing passes between ranks" : "Bus bandwidth, GB/s",
              kBandwidthSpan.left - 46, top + 64, kFont, kTextColour);
    add_legend(panel, top + kTitleHeight + kPlotHeight + kAxisHeight + kLegendRow / 2);
    if (number + 1 == figure_.panels.size()) add_notes();

    const double axis_top = top + kTitleHeight + kPlotHeight;
    add("set tmargin at screen {:.5f}", y(top + kTitleHeight));
    add("set bmargin at screen {:.5f}", y(axis_top));
    add_plot(number, true, axis_top, time_axis(times_in(panel)));
    add("unset label\nunset arrow");
    if (!bandwidths.empty()) add_plot(number, false, axis_top, bandwidth_axis(bandwidths));
    add("unset label");
  }

  void add_label(std::string_view text, double left, double top, double font_size, std::string_view colour,
                 bool bold = false) {
    add("set label {} at screen {:.5f},{:.5f} left noenhanced font '{},{}' textcolor rgb '{}'", quoted(text), x(left),
        y(top), bold ? std::string(kPlotFont) + ":Bold" : std::string(), font_size, colour);
  }

  void add_legend(const PlotPanel& panel, double top) {
    constexpr double kSample = 26;
    const Legend legend = legend_of(panel, kWidth - 2 * kPageMargin, kFont);
    for (std::size_t i = 0; i < panel.curves.size(); ++i) {
      const double left = kPageMargin + legend.column_width * static_cast<double>(i / legend.rows);
      const double middle = top + kLegendRow * static_cast<double>(i % legend.rows);
      add("set arrow from screen {:.5f},{:.5f} to screen {:.5f},{:.5f} nohead lw 2 lc rgb '{}'", x(left), y(middle),
          x(left + kSample), y(middle), colour_of(i));
      add("set label '' at screen {:.5f},{:.5f} point pt {} ps 0.7 lc rgb '{}'", x(left + kSample / 2), y(middle),
          marker_of(i), colour_of(i));
      add_label(panel.curves[i].name, left + kSample + 8, middle, kFont, kTextColour);
    }
  }

  void add_notes() {
    double top = height_ - kPageMargin / 2 - kNoteRow * (static_cast<double>(figure_.notes.size()) + 0.5);
    const bool bounds = std::any_of(figure_.panels.begin(), figure_.panels.end(),
                                    [](const PlotPanel& panel) { return !bounds_of(panel).empty(); });
    add_label(fmt::format("Points: medians. Bands: their 95 % intervals.{}",
                          bounds ? " Dashed: what this machine allows; grey where curves share it." : ""),
              kPageMargin, top, kSmallFont, kFaintColour);
    for (const std::string& note : figure_.notes) {
      top += kNoteRow;
      add_label(fitted(note, kSmallFont), kPageMargin, top, kSmallFont, kFaintColour);
    }
  }

  void add_plot(std::size_t number, bool time, double axis_top, const Axis& values) {
    const PlotPanel& panel = figure_.panels[number];
    const Span span = time ? kTimeSpan : kBandwidthSpan;
    add("set lmargin at screen {:.5f}", x(span.left));
    add("set rmargin at screen {:.5f}", x(span.right));
    add_axis('x', size_axis(sizes_in(panel)), 2);
    add_axis('y', values, 10);
    add_label("size in bytes", (span.left + span.right) / 2 - 36, axis_top + 38, kFont, kFaintColour);

    const std::string_view kind = time ? "t" : "b";
    std::vector<std::string> parts, lines;
    for (const BoundLine& bound : bounds_of(panel)) {
      const Curve& curve = panel.curves[bound.curve];
      if ((time ? curve.time_bound : curve.bandwidth_bound).empty()) continue;
      parts.push_back(fmt::format("{} using 1:2 with lines lw 1.5 dt (7,5) lc rgb '{}'",
                                  data_name(number, bound.curve, time ? "tl" : "bl"),
                                  bound.shared ? kFaintColour : colour_of(bound.curve)));
    }
    for (std::size_t c = 0; c < panel.curves.size(); ++c) {
      const auto& points = time ? panel.curves[c].time : panel.curves[c].bandwidth;
      if (points.empty()) continue;
      const std::string data = data_name(number, c, kind);
      const std::string_view colour = colour_of(c);
      // One point has no band; a bar shows its interval.
      parts.push_back(
          points.size() > 1
              ? fmt::format("{} using 1:3:4 with filledcurves fc rgb '{}' fs transparent solid 0.22 noborder", data,
                            colour)
              : fmt::format("{} using 1:2:3:4 with yerrorbars pt 0 lw 1.5 lc rgb '{}'", data, colour));
      lines.push_back(
          fmt::format("{} using 1:2 with linespoints lw 2 pt {} ps 0.6 lc rgb '{}'", data, marker_of(c), colour));
    }
    parts.insert(parts.end(), lines.begin(), lines.end());
    add("plot {}", fmt::join(parts, ", "));
  }

  void add_axis(char name, const Axis& axis, int base) {
    add("set logscale {} {}", name, base);
    add("set {}range [{:.10g}:{:.10g}]", name, axis.low, axis.high);
    std::string ticks;
    for (const Tick& tick : axis.ticks) {
      ticks += fmt::format("{}'{}' {:.10g} {}", ticks.empty() ? "" : ", ", tick.label, tick.value,
                           tick.label.empty() ? 1 : 0);
    }
    add("unset m{}tics", name);
    add("set {}tics ({})", name, ticks);
  }

  const Figure& figure_;
  PlotFormat format_;
  double height_ = 0;
  std::string out_;
};

}  // namespace

std::string plot_script(const Figure& figure, PlotFormat format) {
  return Script(figure, format).text();
}

}  // namespace col::colbench
