// A plan for a terminal: a table with a column for every rank where that is narrow enough, otherwise a list.
//
//   round  rank 0  rank 1  rank 2  rank 3
//       0  →3 [0]                              what each rank sends, to whom
//       1  →1 [0]                  →2 [0]
#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <col/plan.hpp>

#include "core/joined.hpp"
#include "plan/drawing/trace.hpp"

namespace col {
namespace {

namespace drawing = plan::drawing;

constexpr std::size_t kWidest = 100;
constexpr std::size_t kMargin = 7;  // for the number of the round

// Code points, one column each: labels are ASCII but for the arrow.
std::size_t width(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

std::string padded(std::string text, std::size_t to) {
  const std::size_t is = width(text);
  return is < to ? text + std::string(to - is, ' ') : text;
}

std::string trimmed(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

std::string counted(std::size_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

// "→2 x0-1[3] x4[3]": in several lines, broken at spaces and brackets, where it is wider than `most`.
std::vector<std::string> cell(const PlanProblem& problem, const drawing::Message& message, std::size_t most) {
  std::vector<std::string> lines = {fmt::format("→{}", message.to)};
  std::string word = " ";
  const auto put = [&] {
    if (width(lines.back()) + word.size() > most) {
      lines.emplace_back(" ");
      if (word.front() == ' ') word.erase(0, 1);
    }
    lines.back() += word;
    word.clear();
  };
  for (const char c : drawing::label(problem, message)) {
    if ((c == ' ' || c == '[') && word != " ") put();
    word += c;
  }
  if (word != " ") put();
  return lines;
}

struct Layout {
  std::size_t width;  // of a column
  std::size_t gap;    // between columns
};

std::size_t widest_line(const PlanProblem& problem, const drawing::Trace& trace, std::size_t most) {
  std::size_t widest = width(fmt::format("rank {}", problem.size() - 1));
  for (const drawing::Message& message : trace.messages) {
    for (const std::string& line : cell(problem, message, most)) widest = std::max(widest, width(line));
  }
  return widest;
}

std::optional<Layout> layout(const PlanProblem& problem, const drawing::Trace& trace) {
  const auto columns = static_cast<std::size_t>(problem.size());
  const auto fits = [columns](const Layout& layout) {
    return kMargin + columns * (layout.width + layout.gap) - layout.gap <= kWidest;
  };
  const Layout roomy{widest_line(problem, trace, kWidest), 2};
  if (fits(roomy)) return roomy;
  const std::size_t left = (kWidest - kMargin + 1) / columns;
  const Layout tight{widest_line(problem, trace, left > 1 ? left - 1 : 0), 1};
  if (fits(tight)) return tight;
  return std::nullopt;
}

std::string table(const PlanProblem& problem, const drawing::Trace& trace, const Layout& layout) {
  const auto size = static_cast<std::size_t>(problem.size());
  std::string text = padded("round", kMargin);
  for (std::size_t r = 0; r < size; ++r) text += padded(fmt::format("rank {}", r), layout.width + layout.gap);
  text = trimmed(std::move(text)) + "\n";
  auto message = trace.messages.begin();
  for (std::size_t round = 0; round < trace.rounds; ++round) {
    std::vector<std::vector<std::string>> columns(size);
    for (; message != trace.messages.end() && message->round == round; ++message) {
      std::vector<std::string>& column = columns[static_cast<std::size_t>(message->from)];
      for (std::string& line : cell(problem, *message, layout.width)) column.push_back(std::move(line));
    }
    std::size_t height = 0;
    for (const auto& column : columns) height = std::max(height, column.size());
    for (std::size_t i = 0; i < height; ++i) {
      std::string line = padded(i == 0 ? fmt::format("{:>5}", round) : "", kMargin);
      for (const auto& column : columns) line += padded(i < column.size() ? column[i] : "", layout.width + layout.gap);
      text += trimmed(std::move(line)) + "\n";
    }
  }
  return text;
}

std::string listing(const PlanProblem& problem, const drawing::Trace& trace) {
  std::string text;
  auto message = trace.messages.begin();
  for (std::size_t round = 0; round < trace.rounds; ++round) {
    text += fmt::format("round {}\n", round);
    for (; message != trace.messages.end() && message->round == round; ++message)
      text += fmt::format("{:>6} {}\n", message->from, core::joined(cell(problem, *message, kWidest), "\n       "));
  }
  return text;
}

}  // namespace

std::string draw_text(const PlanProblem& problem, const PlanOfRank& plans, std::string_view title) {
  const drawing::Trace trace = drawing::trace(problem, plans);
  std::string text = fmt::format("{}: {}, {}, {}\n", title, counted(static_cast<std::size_t>(problem.size()), "rank"),
                                 counted(trace.rounds, "round"), counted(trace.messages.size(), "message"));
  const std::string explanation = drawing::explanation(problem, trace);
  if (!explanation.empty()) text += explanation + "\n";
  if (trace.messages.empty()) return text;
  const auto narrow = layout(problem, trace);
  return text + "\n" + (narrow ? table(problem, trace, *narrow) : listing(problem, trace));
}

}  // namespace col
