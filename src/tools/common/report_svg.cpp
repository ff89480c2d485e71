// Charts, drawn here: no other program has to be there, and they fit windows of any width.
#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/report.hpp"
#include "common/text.hpp"

namespace col::tools {
namespace {

// In the drawing's own unit; a page stretches it.
constexpr double kWidth = 480, kHeight = 310, kLeft = 58, kRight = 470, kTop = 26, kBottom = 270, kBarRow = 40;

// Can be distinguished by people who see colours differently, on white and on black. Beyond eight series they come
// again, with other markers.
constexpr std::array<std::string_view, 8> kColours = {"#1a7dbf", "#d55e00", "#009e73", "#c76aa0",
                                                      "#b8860b", "#3fa3dc", "#8a5bd1", "#7a7f87"};
constexpr std::array<std::string_view, 5> kMarkers = {"m-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0", "m-3.5-3.5h7v7h-7z",
                                                      "m0-5l5 5l-5 5l-5-5z", "m0-5l4.6 8h-9.2z", "m0 5l4.6-8h-9.2z"};

std::string_view colour_of(std::size_t series) {
  return kColours[series % kColours.size()];
}

std::string marker(std::size_t series, double x, double y, const std::string& about = "") {
  const std::string_view form = kMarkers[(series + series / kColours.size()) % kMarkers.size()];
  return fmt::format("<path d=\"M{:.1f} {:.1f}{}\" fill=\"{}\">{}</path>\n", x, y, form, colour_of(series), about);
}

bool has_interval(const ChartPoint& point) {
  return point.low > 0 && std::isfinite(point.high);
}

// ---- Axes -----------------------------------------------------------------------------------------------------------

// Logarithmic, and wide enough for all values.
struct Axis {
  double low, high;
  std::vector<double> ticks = {};
  double part(double value) const { return std::log(value / low) / std::log(high / low); }
};

std::pair<double, double> range_of(const std::vector<double>& values) {
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  return {*low, *high};
}

// Powers of two, as many as have room for their names.
Axis binary_axis(const std::vector<double>& values) {
  constexpr int kMostLabels = 8;
  constexpr double kMargin = 1.5;
  const auto [low, high] = range_of(values);
  Axis axis{low / kMargin, high * kMargin};
  const int first = static_cast<int>(std::ceil(std::log2(axis.low)));
  const int last = static_cast<int>(std::floor(std::log2(axis.high)));
  int step = 1;
  while ((last - first) / step + 1 > kMostLabels) ++step;
  for (int power = std::max(0, first); power <= last; power += step) axis.ticks.push_back(std::exp2(power));
  return axis;
}

// 1, 2 and 5 times a power of ten where there are few decades, else powers of ten.
Axis decimal_axis(const std::vector<double>& values) {
  constexpr double kMargin = 1.25;  // what a marker needs to both of its sides
  constexpr double kLeastSpan = 4;  // so that noise does not fill the chart
  auto [low, high] = range_of(values);
  low /= kMargin;
  high *= kMargin;
  if (const double span = high / low; span < kLeastSpan) {
    low /= std::sqrt(kLeastSpan / span);
    high *= std::sqrt(kLeastSpan / span);
  }
  const double decades = std::log10(high / low);
  const int step = decades > 8 ? 2 : 1;
  Axis axis{low, high};
  for (int decade = static_cast<int>(std::floor(std::log10(low))); decade <= std::ceil(std::log10(high)); ++decade) {
    for (int digit = 1; digit < 10; ++digit) {
      const double value = digit * std::pow(10.0, decade);
      const bool some = decades < 2.2 && (digit == 2 || digit == 5);
      const bool named = (digit == 1 && decade % step == 0) || some || decades < 0.9;
      if (named && value >= low && value <= high) axis.ticks.push_back(value);
    }
  }
  return axis;
}

std::vector<double> xs_of(const Chart& chart) {
  std::vector<double> values;
  for (const Series& series : chart.series) {
    for (const ChartPoint& point : series.points) values.push_back(point.x);
  }
  return values;
}

std::vector<double> ys_of(const Chart& chart) {
  std::vector<double> values;
  for (const Series& series : chart.series) {
    for (const auto* points : {&series.points, &series.bound}) {
      for (const ChartPoint& point : *points) {
        values.push_back(point.y);
        if (has_interval(point)) values.insert(values.end(), {point.low, point.high});
      }
    }
  }
  return values;
}

// ---- Charts ---------------------------------------------------------------------------------------------------------

std::string begin(const Figure& figure, const Chart& chart, double height, const std::vector<std::string>& values,
                  std::string_view attributes) {
  const std::string over = figure.has_bars() ? "" : ", over " + figure.x_title;
  return fmt::format(
      "<svg class=\"chart\" viewBox=\"0 0 {} {}\" role=\"img\"{}>\n<title>{}: {}{}</title>\n<desc>{}.</desc>\n"
      "<text class=\"what\" x=\"2\" y=\"14\">{}</text>\n",
      kWidth, height, attributes, line_markup(figure.title), line_markup(chart.title), line_markup(over),
      line_markup(fmt::format("{}", fmt::join(values, ". "))), line_markup(chart.title));
}

// A bound as it is drawn. If several series have the same, it is drawn once.
struct BoundLine {
  std::size_t series = 0;  // the first that has it
  bool shared = false;
};

std::vector<BoundLine> bounds_of(const Chart& chart) {
  const auto same = [](const ChartPoint& a, const ChartPoint& b) {
    constexpr double kSame = 0.01;  // no eye sees it
    return a.x == b.x && std::abs(a.y - b.y) <= kSame * a.y;
  };
  std::vector<BoundLine> lines;
  for (std::size_t i = 0; i < chart.series.size(); ++i) {
    const auto& bound = chart.series[i].bound;
    if (bound.empty()) continue;
    const auto found = std::find_if(lines.begin(), lines.end(), [&](const BoundLine& line) {
      const auto& other = chart.series[line.series].bound;
      return std::equal(other.begin(), other.end(), bound.begin(), bound.end(), same);
    });
    if (found == lines.end())
      lines.push_back({i});
    else
      found->shared = true;
  }
  return lines;
}

class Curves {
 public:
  Curves(const Figure& figure, const Chart& chart)
      : figure_(figure), chart_(chart), xs_(binary_axis(xs_of(chart))), ys_(decimal_axis(ys_of(chart))) {}

  std::string element(std::string_view attributes) {
    text_ = begin(figure_, chart_, kHeight, in_words(), attributes);
    add_axes();
    for (const BoundLine& line : bounds_of(chart_)) add_bound(line);
    for (std::size_t i = 0; i < chart_.series.size(); ++i) add_series(i);
    return text_ + "</svg>\n";
  }

 private:
  double x(double value) const { return kLeft + xs_.part(value) * (kRight - kLeft); }
  double y(double value) const { return kBottom - ys_.part(value) * (kBottom - kTop); }

  std::vector<std::string> in_words() const {
    std::vector<std::string> words;
    const auto at = [this](const ChartPoint& point) {
      return fmt::format("{} at {}", chart_.text(point.y), figure_.x_text(point.x));
    };
    for (const Series& series : chart_.series) {
      if (series.points.empty()) continue;
      std::string& text = words.emplace_back(series.name + ": " + at(series.points.front()));
      if (series.points.size() > 1) text += " to " + at(series.points.back());
      if (!series.bound.empty()) text += ", at best " + at(series.bound.back());
    }
    return words;
  }

  void add_axes() {
    for (const double tick : xs_.ticks)
      text_ += fmt::format(
          "<path class=\"grid\" d=\"M{0:.1f} {1}V{2}\"/><text x=\"{0:.1f}\" y=\"{3}\" "
          "text-anchor=\"middle\">{4}</text>\n",
          x(tick), kTop, kBottom, kBottom + 17, line_markup(figure_.x_text(tick)));
    for (const double tick : ys_.ticks)
      text_ += fmt::format(
          "<path class=\"grid\" d=\"M{0} {1:.1f}H{2}\"/><text x=\"{3}\" y=\"{4:.1f}\" text-anchor=\"end\">{5}</text>\n",
          kLeft, y(tick), kRight, kLeft - 6, y(tick) + 4, line_markup(chart_.tick(tick)));
    text_ += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n", (kLeft + kRight) / 2,
                         kBottom + 35, line_markup(figure_.x_title));
  }

  std::string place(double at, double value) const { return fmt::format("{:.1f},{:.1f} ", x(at), y(value)); }

  std::string line_of(const std::vector<ChartPoint>& points) const {
    std::string line;
    for (const ChartPoint& point : points) line += place(point.x, point.y);
    return line;
  }

  void add_bound(const BoundLine& bound) {
    std::vector<ChartPoint> points = chart_.series[bound.series].bound;
    constexpr double kReach = 1.2;  // a single one is a short line
    if (points.size() == 1) points = {{points[0].x / kReach, points[0].y}, {points[0].x * kReach, points[0].y}};
    text_ += fmt::format("<polyline class=\"bound{}\" points=\"{}\" stroke=\"{}\"/>\n", bound.shared ? " shared" : "",
                         line_of(points), colour_of(bound.series));
  }

  void add_series(std::size_t number) {
    const Series& series = chart_.series[number];
    std::string above, below;
    for (const ChartPoint& point : series.points) {
      if (!has_interval(point)) continue;
      above += place(point.x, point.high);
      below.insert(0, place(point.x, point.low));
    }
    // The outline shows that of a single point, too.
    if (!above.empty())
      text_ +=
          fmt::format("<polygon points=\"{}{}\" fill=\"{}\" opacity=\".22\"{}/>\n", above, below, colour_of(number),
                      series.points.size() > 1 ? "" : fmt::format(" stroke=\"{}\"", colour_of(number)));
    text_ += fmt::format("<polyline points=\"{}\" stroke=\"{}\"/>\n", line_of(series.points), colour_of(number));
    for (const ChartPoint& point : series.points)
      text_ += marker(number, x(point.x), y(point.y),
                      fmt::format("<title>{}, {}: {}</title>", line_markup(series.name),
                                  line_markup(figure_.x_text(point.x)), line_markup(chart_.text(point.y))));
  }

  const Figure& figure_;
  const Chart& chart_;
  Axis xs_, ys_;
  std::string text_;
};

// In the order of the first chart, the least first, with bars as long as the values.
std::string bars(const Figure& figure, const Chart& chart, std::string_view attributes) {
  const std::vector<Series>& all = figure.charts.front().series;
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!chart.series[i].points.empty()) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return all[a].points.front().y < all[b].points.front().y; });
  const double longest = range_of(ys_of(chart)).second;
  const auto length = [&](double value) { return (kRight - 2) * value / longest; };
  std::vector<std::string> words;
  std::string drawn;
  double top = kTop;
  for (const std::size_t i : order) {
    const Series& series = chart.series[i];
    const ChartPoint& point = series.points.front();
    const std::string value = chart.text(point.y);
    constexpr std::size_t kMostLetters = 58;
    words.push_back(series.name + ": " + value);
    drawn += fmt::format(
        "<text x=\"2\" y=\"{0:.1f}\">{1}</text><text x=\"{2}\" y=\"{0:.1f}\" text-anchor=\"end\">{3}</text>\n"
        "<rect x=\"2\" y=\"{4:.1f}\" width=\"{5:.1f}\" height=\"12\" fill=\"{6}\"/>\n",
        top + 14, line_markup(cut(one_line(series.name), kMostLetters)), kRight, line_markup(value), top + 20,
        length(point.y), colour_of(0));
    if (has_interval(point))
      drawn += fmt::format("<path class=\"interval\" d=\"M{:.1f} {:.1f}H{:.1f}\"/>\n", 2 + length(point.low), top + 26,
                           2 + length(point.high));
    if (!series.bound.empty()) {
      words.back() += ", at best " + chart.text(series.bound.front().y);
      drawn += fmt::format("<path class=\"limit\" d=\"M{:.1f} {:.1f}v18\"/>\n", 2 + length(series.bound.front().y),
                           top + 17);
    }
    top += kBarRow;
  }
  return begin(figure, chart, top + 4, words, attributes) + drawn + "</svg>\n";
}

double height_of(const Figure& figure) {
  if (!figure.has_bars()) return kHeight;
  return kTop + 4 + kBarRow * static_cast<double>(figure.charts.front().series.size());
}

// ---- A document -----------------------------------------------------------------------------------------------------

constexpr std::string_view kText = "#1b1f24", kFaint = "#59616b", kLine = "#d8dde3";

// From the top down, two charts beside each other.
class Document {
 public:
  std::string text(const Part& part) {
    for (const Figure& figure : part.figures) add_figure(figure);
    for (const Note& note : part.notes) add_text(kMargin, 17, note.text, kFaint, 150);
    const double height = top_ + kMargin;
    const std::string title = part.title.empty() ? "" : fmt::format("<title>{}</title>\n", line_markup(part.title));
    return fmt::format(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" "
        "width=\"{0}\" height=\"{1}\" font-family=\"Helvetica, Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif\" "
        "font-size=\"12.5\">\n{2}<style>{3}</style>\n<rect width=\"100%\" height=\"100%\" "
        "fill=\"#ffffff\"/>\n{4}</svg>\n",
        kPage, height, title, chart_style(kText, kFaint, kLine), drawn_);
  }

 private:
  static constexpr double kPage = 1004, kMargin = 18, kColumn = 488;

  void add_text(double x, double down, std::string_view text, std::string_view colour, std::size_t most,
                std::string_view attributes = "") {
    top_ += down;
    drawn_ += fmt::format("<text x=\"{}\" y=\"{}\" fill=\"{}\"{}>{}</text>\n", x, top_, colour, attributes,
                          line_markup(cut(one_line(text), most)));
  }

  void add_figure(const Figure& figure) {
    add_text(kMargin, 26, figure.title, kText, 90, " font-size=\"17\" font-weight=\"bold\"");
    add_text(kMargin, 19, figure.subtitle, kFaint, 150);
    top_ += 8;
    const double height = height_of(figure);
    for (std::size_t i = 0; i < figure.charts.size(); ++i)
      drawn_ += chart_element(figure, figure.charts[i], placed(column(i), top_, kWidth, height));
    top_ += height;
    const std::vector<Series>& series = figure.charts.front().series;
    for (std::size_t i = 0; i < series.size() && !figure.has_bars(); ++i) {
      if (i % 2 == 0) top_ += 20;
      drawn_ += key_element(i, placed(column(i % 2), top_ - 10, 28, 12));
      add_text(column(i % 2) + 36, 0, series[i].name, kText, 70);
    }
    top_ += 14;
  }

  static double column(std::size_t number) { return kMargin + kColumn * static_cast<double>(number); }
  static std::string placed(double x, double y, double width, double height) {
    return fmt::format(" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"", x, y, width, height);
  }

  double top_ = 0;
  std::string drawn_;
};

}  // namespace

bool Figure::has_bars() const {
  const std::vector<double> all = xs_of(charts.front());
  return std::set<double>(all.begin(), all.end()).size() == 1;
}

std::string line_markup(std::string_view text) {
  return markup(one_line(text));
}

std::string chart_element(const Figure& figure, const Chart& chart, std::string_view attributes) {
  return figure.has_bars() ? bars(figure, chart, attributes) : Curves(figure, chart).element(attributes);
}

std::string key_element(std::size_t series, std::string_view attributes) {
  return fmt::format(
      "<svg viewBox=\"0 0 28 12\" aria-hidden=\"true\"{}><path d=\"M0 6H28\" stroke=\"{}\" "
      "stroke-width=\"2\"/>{}</svg>",
      attributes, colour_of(series), marker(series, 14, 6));
}

std::string chart_style(std::string_view text, std::string_view faint, std::string_view line) {
  return fmt::format(
      "\n.chart {{ fill: none; stroke-width: 2; }}\n.chart text {{ fill: {1}; stroke: none; }}\n"
      ".chart .what {{ fill: {0}; }}\n.chart .grid {{ stroke: {2}; stroke-width: .8; }}\n"
      ".chart .bound {{ stroke-dasharray: 7 5; stroke-width: 1.5; }}\n.chart .shared {{ stroke: {1}; }}\n"
      ".chart .interval, .chart .limit {{ stroke: {0}; stroke-width: 1.5; }}\n",
      text, faint, line);
}

std::string svg_document(const Part& part) {
  return Document().text(part);
}

}  // namespace col::tools
