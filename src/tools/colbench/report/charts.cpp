// The figures of a page, drawn here: no other program has to be there, and they fit windows of any width.
#include "colbench/report/reports.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "colbench/report/values.hpp"
#include "common/text.hpp"

namespace col::colbench {
namespace {

// Of the drawing's own unit; the page stretches it.
constexpr double kChartWidth = 480, kChartHeight = 310, kChartLeft = 58, kChartRight = 470, kChartTop = 26,
                 kChartBottom = 270;
constexpr std::size_t kMarkerForms = 5;

std::string chart_text(std::string_view text) {
  return tools::markup(tools::one_line(text));
}

std::string_view stroke_of(std::size_t curve) {
  return kCurveColours[curve % kCurveColours.size()];
}

// Beyond eight curves colours come again, with other markers.
std::size_t marker_form(std::size_t curve) {
  return (curve + curve / kCurveColours.size()) % kMarkerForms;
}

// A marker around a point.
std::string marker_path(std::size_t curve, double x, double y, std::string_view title = {}) {
  constexpr std::string_view kPaths[kMarkerForms] = {"m-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0", "m-3.5-3.5h7v7h-7z",
                                                     "m0-5l5 5l-5 5l-5-5z", "m0-5l4.6 8h-9.2z", "m0 5l4.6-8h-9.2z"};
  const std::string about = title.empty() ? "" : fmt::format("<title>{}</title>", title);
  return fmt::format("<path d=\"M{:.1f} {:.1f}{}\" fill=\"{}\">{}</path>\n", x, y, kPaths[marker_form(curve)],
                     stroke_of(curve), about);
}

// One chart: time or bandwidth over size.
class Chart {
 public:
  Chart(const PlotPanel& panel, bool time)
      : panel_(panel),
        time_(time),
        sizes_(size_axis(sizes_in(panel))),
        values_(time ? time_axis(times_in(panel)) : bandwidth_axis(bandwidths_in(panel))) {}

  std::string element() {
    const std::string_view what = time_ ? "Time of one operation, median" : "Bus bandwidth, GB/s";
    text_ = fmt::format("<svg class=\"chart\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}: {} over size\">\n",
                        kChartWidth, kChartHeight, chart_text(panel_.title), what);
    text_ += fmt::format("<text class=\"what\" x=\"2\" y=\"14\">{}</text>\n", what);
    add_axes();
    for (const BoundLine& bound : bounds_of(panel_)) {
      const Curve& curve = panel_.curves[bound.curve];
      const auto& points = time_ ? curve.time_bound : curve.bandwidth_bound;
      if (points.size() < 2) continue;
      text_ += fmt::format("<polyline class=\"bound\" points=\"{}\" stroke=\"{}\"/>\n", line_of(points),
                           bound.shared ? "var(--faint)" : stroke_of(bound.curve));
    }
    for (std::size_t i = 0; i < panel_.curves.size(); ++i) add_curve(i);
    return text_ + "</svg>\n";
  }

 private:
  double x(double bytes) const { return kChartLeft + part(sizes_, bytes) * (kChartRight - kChartLeft); }
  double y(double value) const { return kChartBottom - part(values_, value) * (kChartBottom - kChartTop); }
  static double part(const Axis& axis, double value) {
    return std::log(value / axis.low) / std::log(axis.high / axis.low);
  }

  void add_axes() {
    for (const Tick& tick : sizes_.ticks) {
      if (tick.label.empty()) continue;
      text_ += fmt::format(
          "<path class=\"grid\" d=\"M{0:.1f} {1}V{2}\"/><text x=\"{0:.1f}\" y=\"{3}\" "
          "text-anchor=\"middle\">{4}</text>\n",
          x(tick.value), kChartTop, kChartBottom, kChartBottom + 17, chart_text(tick.label));
    }
    for (const Tick& tick : values_.ticks) {
      if (tick.label.empty()) continue;
      text_ += fmt::format(
          "<path class=\"grid\" d=\"M{0} {1:.1f}H{2}\"/><text x=\"{3}\" y=\"{4:.1f}\" text-anchor=\"end\">{5}</text>\n",
          kChartLeft, y(tick.value), kChartRight, kChartLeft - 6, y(tick.value) + 4, chart_text(tick.label));
    }
    text_ += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">size in bytes</text>\n",
                         (kChartLeft + kChartRight) / 2, kChartBottom + 35);
  }

  std::string line_of(const std::vector<CurvePoint>& points) const {
    std::string line;
    for (const CurvePoint& point : points) line += fmt::format("{:.1f},{:.1f} ", x(point.bytes), y(point.value));
    return line;
  }

  void add_curve(std::size_t number) {
    const Curve& curve = panel_.curves[number];
    const auto& points = time_ ? curve.time : curve.bandwidth;
    const auto known = [](const CurvePoint& point) { return point.low > 0 && std::isfinite(point.high); };
    std::string band;
    for (const CurvePoint& point : points) {
      if (known(point)) band += fmt::format("{:.1f},{:.1f} ", x(point.bytes), y(point.high));
    }
    for (auto point = points.rbegin(); point != points.rend(); ++point) {
      if (known(*point)) band += fmt::format("{:.1f},{:.1f} ", x(point->bytes), y(point->low));
    }
    if (!band.empty())
      text_ += fmt::format("<polygon points=\"{}\" fill=\"{}\" opacity=\".22\"/>\n", band, stroke_of(number));
    text_ += fmt::format("<polyline points=\"{}\" stroke=\"{}\"/>\n", line_of(points), stroke_of(number));
    for (const CurvePoint& point : points) {
      const std::string value = time_ ? time_text(point.value) : bandwidth_text(point.value * 1e9) + " GB/s";
      text_ += marker_path(
          number, x(point.bytes), y(point.value),
          fmt::format("{}, {}: {}", chart_text(curve.name), size_text(static_cast<std::size_t>(point.bytes)), value));
    }
  }

  const PlotPanel& panel_;
  bool time_;
  Axis sizes_, values_;
  std::string text_;
};

std::string chart_key(const PlotPanel& panel) {
  std::string text = "<ul class=\"key\">\n";
  for (std::size_t i = 0; i < panel.curves.size(); ++i) {
    text += fmt::format(
        "<li><svg viewBox=\"0 0 28 12\" aria-hidden=\"true\"><path d=\"M0 6H28\" stroke=\"{}\" "
        "stroke-width=\"2\"/>{}</svg> "
        "{}</li>\n",
        stroke_of(i), marker_path(i, 14, 6), chart_text(panel.curves[i].name));
  }
  return text + "</ul>\n";
}

std::string curves_figure(const PlotPanel& panel) {
  std::string text = "<div class=\"charts\">\n" + Chart(panel, true).element();
  if (!bandwidths_in(panel).empty()) text += Chart(panel, false).element();
  return text + "</div>\n" + chart_key(panel);
}

// The fastest first, with bars as long as the times; a mark where the bound is.
std::string bars_figure(const PlotPanel& panel) {
  std::vector<const Curve*> curves;
  double longest = 0;
  for (const Curve& curve : panel.curves) {
    curves.push_back(&curve);
    longest = std::max(longest, curve.time.front().value);
  }
  std::stable_sort(curves.begin(), curves.end(),
                   [](const Curve* a, const Curve* b) { return a->time.front().value < b->time.front().value; });
  std::string text = "<table class=\"bars\">\n<tbody>\n";
  for (const Curve* curve : curves) {
    const CurvePoint& point = curve->time.front();
    const double bound = curve->time_bound.empty() ? 0 : curve->time_bound.front().value;
    const std::string mark =
        bound > 0 ? fmt::format("<path d=\"M{:.1f} 0V10\"/>", 100 * std::min(1.0, bound / longest)) : std::string();
    text += fmt::format(
        "<tr><th scope=\"row\">{}</th><td><svg class=\"bar\" viewBox=\"0 0 100 10\" preserveAspectRatio=\"none\" "
        "aria-hidden=\"true\"><rect width=\"{:.1f}\" height=\"10\"/>{}</svg></td>"
        "<td class=\"number\">{}</td></tr>\n",
        chart_text(curve->name), 100 * point.value / longest, mark, time_text(point.value));
  }
  return text + "</tbody>\n</table>\n";
}

}  // namespace

std::string charts_section(const Figure& figure) {
  std::string text;
  bool curves = false, bars = false, bounds = false;
  for (const PlotPanel& panel : figure.panels) {
    const std::vector<double> sizes = sizes_in(panel);
    const bool one = std::set<double>(sizes.begin(), sizes.end()).size() == 1;
    (one ? bars : curves) = true;
    bounds = bounds || !bounds_of(panel).empty();
    const std::string size = one ? " of " + size_text(static_cast<std::size_t>(sizes.front())) : "";
    text += fmt::format("<figure>\n<figcaption><h3>{}{}</h3>\n<p class=\"note\">{}</p></figcaption>\n{}</figure>\n",
                        chart_text(panel.title), size, chart_text(panel.subtitle),
                        one ? bars_figure(panel) : curves_figure(panel));
  }
  text += "<ul class=\"notes\">\n";
  if (curves) {
    text += fmt::format("<li>Points: medians. Bands: their 95 % intervals.{}</li>\n",
                        bounds ? " Dashed: what this machine allows; grey where curves share it." : "");
  }
  if (bars) {
    text += fmt::format("<li>Bars: medians, the fastest first.{}</li>\n",
                        bounds ? " The line across a bar: what this machine allows." : "");
  }
  for (const std::string& note : figure.notes) text += fmt::format("<li>{}</li>\n", chart_text(note));
  return text + "</ul>\n";
}

}  // namespace col::colbench
