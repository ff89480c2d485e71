// A plan as a picture: a lane for every rank, rounds from left to right, an arrow for every message.
#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <col/plan.hpp>

#include "plan/drawing/trace.hpp"

namespace col {
namespace {

namespace drawing = plan::drawing;

struct Look {
  std::string_view name;
  std::string_view colour;  // can also be distinguished by people who see fewer colours
};
// By drawing::Payload.
constexpr std::array<Look, drawing::kPayloads> kLooks = {Look{"signal", "#707070"}, Look{"bare input", "#0072b2"},
                                                         Look{"partial result", "#d55e00"},
                                                         Look{"finished result", "#008f68"}};

const Look& look_of(drawing::Payload payload) {
  return kLooks[static_cast<std::size_t>(payload)];
}

constexpr double kLane = 46;          // from one rank to the next
constexpr double kLeft = 72;          // of the first round
constexpr double kTop = 84;           // of the first lane
constexpr double kArrow = 66;         // from one end of an arrow to the other, across
constexpr double kInset = 9;          // of what is in a round
constexpr double kCharacter = 6.6;    // of a label
constexpr double kLegend = 140;       // from one entry to the next
constexpr std::size_t kLongest = 18;  // label that is written out; the others are in the tooltips

std::string escaped(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    switch (c) {
      case '&':
        safe += "&amp;";
        break;
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      case '"':
        safe += "&quot;";
        break;
      default:
        safe += c;
    }
  }
  return safe;
}

class Picture {
 public:
  Picture(const PlanProblem& problem, const drawing::Trace& trace);
  std::string draw(std::string_view title);

 private:
  double lane(int rank) const { return kTop + kLane * rank; }
  static std::string_view shade(std::size_t round) { return round % 2 == 0 ? "#f4f4f4" : "white"; }
  // True if the label fits: all that its rank sends in this round is the same.
  bool has_room(std::size_t i) const;
  bool occurs(drawing::Payload payload) const;
  void text(double x, double y, std::string_view attributes, std::string_view content);
  void frame(std::string_view title);
  void arrow(const drawing::Message& message);
  void write_label(const drawing::Message& message);
  void legend();

  const PlanProblem& problem_;
  const drawing::Trace& trace_;
  std::vector<std::string> labels_;  // by message
  // Each round's left end, and the last one's right end. Labels come first, then the arrows.
  std::vector<double> begin_ = {kLeft};
  double width_ = 0, height_ = 0;
  std::string svg_;
};

Picture::Picture(const PlanProblem& problem, const drawing::Trace& trace) : problem_(problem), trace_(trace) {
  for (const drawing::Message& message : trace.messages) labels_.push_back(drawing::label(problem, message));
  std::vector<std::size_t> longest(trace.rounds, 0);
  for (std::size_t i = 0; i < labels_.size(); ++i) {
    std::size_t& of_round = longest[trace.messages[i].round];
    if (has_room(i)) of_round = std::max(of_round, labels_[i].size());
  }
  for (const std::size_t characters : longest)
    begin_.push_back(begin_.back() + 3 * kInset + kCharacter * static_cast<double>(characters) + kArrow);
  double legend = kLeft + 80;
  for (int i = 0; i < drawing::kPayloads; ++i) legend += occurs(static_cast<drawing::Payload>(i)) ? kLegend : 0;
  const double explanation = 24 + kCharacter * static_cast<double>(drawing::explanation(problem, trace).size());
  width_ = std::max({begin_.back() + 24, legend, explanation});
  height_ = lane(problem.size() - 1) + 84;
}

bool Picture::has_room(std::size_t i) const {
  const drawing::Message& message = trace_.messages[i];
  const auto agrees = [&](std::size_t other) {
    const drawing::Message& there = trace_.messages[other];
    return there.round != message.round || there.from != message.from || labels_[other] == labels_[i];
  };
  bool all_agree = labels_[i].size() <= kLongest;
  // Messages of one rank and round are neighbours.
  for (std::size_t k = i; k-- > 0 && trace_.messages[k].round == message.round;) all_agree = all_agree && agrees(k);
  for (std::size_t k = i + 1; k < labels_.size() && trace_.messages[k].round == message.round; ++k)
    all_agree = all_agree && agrees(k);
  return all_agree;
}

bool Picture::occurs(drawing::Payload payload) const {
  return std::any_of(trace_.messages.begin(), trace_.messages.end(),
                     [payload](const drawing::Message& message) { return message.payload == payload; });
}

std::string Picture::draw(std::string_view title) {
  frame(title);
  for (const drawing::Message& message : trace_.messages) arrow(message);
  for (const drawing::Reduction& reduction : trace_.reductions) {
    svg_ += fmt::format(
        R"(<path d="M{0:.1f} {1:.1f}m-5 0a5 5 0 1 0 10 0a5 5 0 1 0 -10 0m2 0h6m-3 -3v6" fill="white" stroke="#333"/>)"
        "\n",
        begin_[reduction.round + 1] - kInset, lane(reduction.rank));
  }
  for (const drawing::Message& message : trace_.messages) write_label(message);
  legend();
  return std::move(svg_) + "</svg>\n";
}

void Picture::text(double x, double y, std::string_view attributes, std::string_view content) {
  svg_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" {}>{}</text>\n", x, y, attributes, escaped(content));
}

// The sheet with its headings and lanes.
void Picture::frame(std::string_view title) {
  svg_ = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} {1:.0f}\" "
      "font-family=\"sans-serif\" font-size=\"11\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
      width_, height_);
  text(16, 26, R"(font-size="16" font-weight="bold")", title);
  const double top = lane(0) - 22;
  const double bottom = lane(problem_.size() - 1) + 22;
  for (std::size_t round = 0; round < trace_.rounds; ++round) {
    const double width = begin_[round + 1] - begin_[round];
    svg_ += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"{}\"/>\n",
                        begin_[round], top, width, bottom - top, shade(round));
    text(begin_[round] + width / 2, top - 8, R"(text-anchor="middle" fill="#555")", fmt::format("round {}", round));
  }
  for (int r = 0; r < problem_.size(); ++r) {
    svg_ += fmt::format("<path d=\"M{:.1f} {:.1f}H{:.1f}\" stroke=\"#bbb\"/>\n", kLeft, lane(r), begin_.back());
    text(kLeft - 10, lane(r) + 4, R"(text-anchor="end" font-size="12")", fmt::format("rank {}", r));
  }
}

void Picture::arrow(const drawing::Message& message) {
  const auto i = static_cast<std::size_t>(&message - trace_.messages.data());
  const Look& look = look_of(message.payload);
  const double x1 = begin_[message.round + 1] - kInset - 7, y1 = lane(message.to);
  const double x0 = x1 - kArrow, y0 = lane(message.from);
  const double length = std::max(1.0, std::sqrt((x1 - x0) * (x1 - x0) + (y1 - y0) * (y1 - y0)));
  const double dx = (x1 - x0) / length, dy = (y1 - y0) / length;  // the arrow's direction
  constexpr double kHead = 9, kHalf = 3.6;
  const double bx = x1 - kHead * dx, by = y1 - kHead * dy;
  svg_ += fmt::format("<g stroke=\"{0}\" fill=\"{0}\"{1}><title>round {2}: rank {3} → rank {4}{5}</title>", look.colour,
                      message.payload == drawing::Payload::signal ? " stroke-dasharray=\"4 3\"" : "", message.round,
                      message.from, message.to, escaped(labels_[i].empty() ? "" : ": " + labels_[i]));
  svg_ += fmt::format(
      "<path d=\"M{:.1f} {:.1f}L{:.1f} {:.1f}\" stroke-width=\"1.5\"/>"
      "<path d=\"M{:.1f} {:.1f}L{:.1f} {:.1f}L{:.1f} {:.1f}z\" stroke=\"none\"/></g>\n",
      x0, y0, bx, by, x1, y1, bx - kHalf * dy, by + kHalf * dx, bx + kHalf * dy, by - kHalf * dx);
}

void Picture::write_label(const drawing::Message& message) {
  const auto i = static_cast<std::size_t>(&message - trace_.messages.data());
  if (labels_[i].empty() || !has_room(i)) return;
  text(begin_[message.round + 1] - 2 * kInset - kArrow - 2, lane(message.from) + 4,
       fmt::format(R"(text-anchor="end" fill="{}" stroke="{}" stroke-width="4" paint-order="stroke")",
                   look_of(message.payload).colour, shade(message.round)),
       labels_[i]);
}

void Picture::legend() {
  double x = kLeft;
  const double y = height_ - 42;
  for (std::size_t i = 0; i < kLooks.size(); ++i) {
    if (!occurs(static_cast<drawing::Payload>(i))) continue;
    svg_ += fmt::format("<path d=\"M{:.1f} {:.1f}h26\" stroke=\"{}\" stroke-width=\"3\"/>\n", x, y, kLooks[i].colour);
    text(x + 32, y + 4, R"(fill="#333")", kLooks[i].name);
    x += kLegend;
  }
  if (!trace_.reductions.empty()) text(x, y + 4, R"(fill="#333")", "⊕ combines");
  text(16, height_ - 14, R"(fill="#555")", drawing::explanation(problem_, trace_));
}

}  // namespace

std::string draw_svg(const PlanProblem& problem, const PlanOfRank& plans, std::string_view title) {
  const drawing::Trace trace = drawing::trace(problem, plans);
  return Picture(problem, trace).draw(title);
}

}  // namespace col
