#include "launch/top/frame.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "common/report.hpp"
#include "common/text.hpp"
#include "launch/report/rank_words.hpp"
#include "launch/report/wait_graph.hpp"
#include "launch/report/why.hpp"

namespace col::launch {
namespace {

using tools::Tone;

constexpr std::array<std::string_view, 6> kSortNames = {"interest", "rank", "calls", "waiting", "CPU", "RSS"};
constexpr std::size_t kColumnGap = 2;          // between the parts of a line
constexpr std::size_t kLeastCallColumns = 20;  // columns of what may be cut
constexpr std::size_t kLeastGroupColumns = 10;
constexpr std::size_t kMostHostColumns = 12;
constexpr std::string_view kNoAnswer = "no answer";
constexpr std::size_t kMostSentence = 3;  // lines
constexpr std::size_t kMostNotices = 3;

// "950", "12.3k", "1.2M": short, and of three digits at least where there are more.
std::string short_number(double value, double step, std::string_view units) {
  std::size_t unit = 0;
  for (; value >= step * 0.9995 && unit + 1 < units.size(); ++unit) value /= step;
  const std::string number = fmt::format("{:.{}f}", value, unit > 0 && value < 99.95 ? 1 : 0);
  return unit == 0 ? number : number + units[unit];
}

std::string count_text(double value) {
  return value < 9.95 && value > 0 ? fmt::format("{:.1f}", value) : short_number(value, 1000, " kMGT");
}
std::string bytes_text(double value) {
  return short_number(value, 1024, "BKMGT");
}
std::string share_text(double share) {
  return fmt::format("{:.0f}%", share * 100);
}

// How a rank is for those who look: the ones that others wait for come first.
int urgency(const WaitGraph& graph, const Why& found, const std::vector<RankRates>& rates, std::size_t index) {
  if (std::ranges::find(found.culprits, graph.rank(index).rank) != found.culprits.end()) return 0;
  if (rates[index].age) return 1;
  switch (graph.state(index)) {
    case RankState::dead:
    case RankState::stopped:
      return 1;
    case RankState::outside:
      return found.waiting.empty() ? 3 : 2;
    case RankState::inside:
      return 3;
    case RankState::waiting:
      return 4;
    default:
      return 5;
  }
}

std::string awaited_text(const WaitGraph& graph, std::size_t index) {
  const std::vector<int> awaited = graph.awaited_by(index);
  if (awaited.empty()) return "";
  return awaited.size() == 1 ? fmt::to_string(awaited.front()) : fmt::format("{} ranks", awaited.size());
}

// The last one that it was in, in parentheses. `is_old`: what it does now is not known.
std::string call_text(const RankStory& rank, bool is_old) {
  if (!rank.last || rank.last->op.empty()) return "";
  return is_in_call(rank) && !is_old ? name_call(*rank.last) : "(" + name_call(*rank.last) + ")";
}

// Without its domain.
std::string host_text(const std::string& host, tools::Style style) {
  const std::string name = tools::one_line(host, !style.utf8);
  const bool is_number = name.find_first_not_of("0123456789.") == std::string::npos;
  return is_number ? name : name.substr(0, name.find('.'));
}

std::string_view state_text(const WaitGraph& graph, const std::vector<RankRates>& rates, std::size_t index) {
  return rates[index].age ? kNoAnswer : state_of_rank(graph, index);
}

using TextOfNumber = std::string (*)(double);

template <class Value>
std::string text_of(const std::optional<Value>& value, TextOfNumber text) {
  return value ? text(static_cast<double>(*value)) : "";
}

class RankTable {
 public:
  RankTable(const JobStory& story, const WaitGraph& graph, const Why& found, const std::vector<RankRates>& rates,
            const FrameOptions& options)
      : story_(story), graph_(graph), found_(found), rates_(rates), options_(options) {}

  std::vector<std::string> lines(const std::vector<std::size_t>& ranks) {
    make(ranks);
    tools::Style style{.utf8 = options_.style.utf8, .columns = options_.columns};
    const tools::Part part{.tables = {std::move(table_)}};
    std::vector<std::string> lines = tools::lines_of(report_text(part, style));
    const bool fits =
        std::ranges::all_of(lines, [&](const auto& line) { return tools::columns_of(line) <= options_.columns; });
    style.colour = options_.style.colour;
    if (fits) return tools::lines_of(report_text(part, style));
    for (std::string& line : lines) line = tools::cut(line, options_.columns);  // what has colours cannot be cut
    return lines;
  }

 private:
  // The column of the least importance is left out first, and those of importance 0 never. Empty ones are not there.
  template <class TextOf>
  void add(const std::vector<std::size_t>& ranks, std::string title, bool is_number, std::uint8_t importance,
           const TextOf& text_of, std::size_t least = 0) {
    constexpr std::uint8_t kMostImportance = 20;
    tools::TextRow cells;
    for (const std::size_t i : ranks) {
      tools::TextCell& cell = cells.emplace_back(text_of(i));
      if (rates_[i].age && cell.tone == Tone::plain) cell.tone = Tone::faint;
    }
    if (importance > 0 && std::ranges::all_of(cells, &std::string::empty, &tools::TextCell::text)) return;
    table_.columns.push_back({.name = std::move(title),
                              .number = is_number,
                              .goes = importance == 0 ? std::uint8_t{0} : std::uint8_t(kMostImportance - importance),
                              .least = least});
    table_.rows.resize(cells.size());
    for (std::size_t i = 0; i < cells.size(); ++i) table_.rows[i].push_back(std::move(cells[i]));
  }

  void make(const std::vector<std::size_t>& ranks) {
    const auto rank = [&](std::size_t i) -> const RankStory& { return story_.ranks[i]; };
    const auto plain = [](std::string text) { return tools::TextCell{std::move(text)}; };
    const auto number = [&](auto member, TextOfNumber text) {
      return [this, member, text](std::size_t i) { return tools::TextCell{text_of(rates_[i].*member, text)}; };
    };
    add(ranks, "rank", true, 0, [&](std::size_t i) { return plain(fmt::to_string(rank(i).rank)); });
    if (story_.nodes > 1)
      add(ranks, "host", false, 7, [&](std::size_t i) {
        return plain(tools::fitted(host_text(rank(i).host, options_.style), kMostHostColumns, options_.style));
      });
    add(ranks, "pid", true, 3,
        [&](std::size_t i) { return plain(rank(i).status.pid != 0 ? fmt::to_string(rank(i).status.pid) : ""); });
    add(ranks, "state", false, 0, [&](std::size_t i) { return tools::TextCell{state(i), tone(i)}; });
    add(ranks, "since", true, 4, [&](std::size_t i) {
      const double since = rates_[i].age.value_or(graph_.since(i));
      return plain(since >= 0.5 ? tools::in_words(since) : "");
    });
    add(ranks, "waits for", false, 5, [&](std::size_t i) { return plain(awaited_text(graph_, i)); });
    add(
        ranks, "call", false, 0, [&](std::size_t i) { return plain(call_text(rank(i), rates_[i].age.has_value())); },
        kLeastCallColumns);
    add(ranks, "label", false, 7, [&](std::size_t i) { return plain(label_of(rank(i))); });
    add(
        ranks, "group", false, 6, [&](std::size_t i) { return plain(rank(i).last ? rank(i).last->group : ""); },
        kLeastGroupColumns);
    add(ranks, "calls/s", true, 12, number(&RankRates::calls, count_text));
    add(ranks, "wait", true, 13, number(&RankRates::waiting, share_text));
    add(ranks, "data/s", true, 9, number(&RankRates::bytes, bytes_text));
    add(ranks, "RSS", true, 8, number(&RankRates::rss_bytes, bytes_text));
    add(ranks, "CPU", true, 11, number(&RankRates::cpu, share_text));
    add(ranks, "queued", true, 2, number(&RankRates::queued, share_text));
    add(ranks, "GPU", true, 10, [&](std::size_t i) {
      const auto& gpu = rates_[i].gpu;
      return plain(gpu && gpu->busy ? fmt::format("{}%", *gpu->busy) : "");
    });
    add(ranks, "GPU RSS", true, 7, [&](std::size_t i) {
      const auto& gpu = rates_[i].gpu;
      return plain(gpu ? bytes_text(static_cast<double>(gpu->memory_bytes)) : "");
    });
  }

  std::string state(std::size_t i) const { return std::string(state_text(graph_, rates_, i)); }

  Tone tone(std::size_t i) const {
    switch (urgency(graph_, found_, rates_, i)) {
      case 0:
        return found_.seconds >= options_.patience ? Tone::bad : Tone::attention;
      case 1:
        return Tone::bad;
      case 4:
        return Tone::faint;
      default:
        return Tone::plain;
    }
  }

  const JobStory& story_;
  const WaitGraph& graph_;
  const Why& found_;
  const std::vector<RankRates>& rates_;
  const FrameOptions& options_;
  tools::Table table_{.elsewhere = ""};
};

// "480 waiting, 9 computing".
std::string states_text(const WaitGraph& graph, const std::vector<RankRates>& rates,
                        const std::vector<std::size_t>& ranks) {
  std::vector<std::pair<std::string_view, std::size_t>> counts;
  for (const std::size_t i : ranks) {
    const std::string_view state = state_text(graph, rates, i);
    const auto known = std::ranges::find(counts, state, &std::pair<std::string_view, std::size_t>::first);
    if (known != counts.end())
      ++known->second;
    else
      counts.push_back({state, 1});
  }
  std::ranges::stable_sort(counts, [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string text;
  for (const auto& [state, count] : counts) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, state);
  return text;
}

// What the job is, and below it what its ranks wait for, if somebody is missing.
std::vector<std::string> head_of(const WaitGraph& graph, const Why& found, const std::vector<RankRates>& rates,
                                 const std::vector<std::size_t>& all, const FrameOptions& options) {
  const JobStory& story = graph.story();
  const std::string hosts = story.nodes > 1 ? fmt::format(" on {} hosts", story.nodes) : "";
  std::string title = fmt::format("{}  {}{}  {}  {}", tools::one_line(story.job_id), tools::counted(all.size(), "rank"),
                                  hosts, tools::in_words(story.seconds), states_text(graph, rates, all));
  const std::string words = tools::one_line(command_of(story), !options.style.utf8);
  if (!words.empty() && tools::columns_of(title) + kColumnGap < options.columns) title += "  " + words;
  std::vector<std::string> lines = {std::string(tools::cut(title, options.columns))};
  const bool someone_is_missing = found.cause != Why::Cause::nothing && found.cause != Why::Cause::moves;
  const auto add_notices = [&] {
    std::size_t room = kMostNotices;
    for (const std::string& notice : options.notices) {
      if (options.lines > 0 && room-- == 0) break;
      const std::string line = tools::one_line(notice, !options.style.utf8);
      lines.push_back(tools::toned(tools::cut(line, options.columns), Tone::attention, options.style));
    }
  };
  if (!someone_is_missing || found.seconds < options.patience / 2) {
    add_notices();
    return lines;
  }
  const std::string sentence = tools::one_line(found.sentence, !options.style.utf8);
  std::vector<std::string> wrapped = tools::lines_of(tools::wrapped(sentence, options.columns));
  if (options.lines > 0 && wrapped.size() > kMostSentence) wrapped.resize(kMostSentence);
  const Tone tone = found.seconds >= options.patience ? Tone::bad : Tone::attention;
  for (std::string& line : wrapped)
    lines.push_back(tools::toned(tools::cut(line, options.columns), tone, options.style));
  add_notices();
  return lines;
}

std::string keys_of(const FrameOptions& options) {
  if (!options.note.empty()) return std::string(tools::cut(options.note, options.columns));
  const std::string keys =
      fmt::format("{}s sort: {}   k stacks   p {}   d dump   q quit", options.paused ? "paused   " : "",
                  to_string(options.sort), options.paused ? "go on" : "pause");
  return tools::toned(tools::cut(keys, options.columns), Tone::faint, options.style);
}

}  // namespace

std::string_view to_string(SortBy by) noexcept {
  return kSortNames[std::min<std::size_t>(static_cast<std::size_t>(by), kSortNames.size() - 1)];
}

SortBy next(SortBy by) noexcept {
  return static_cast<SortBy>((static_cast<std::size_t>(by) + 1) % kSortNames.size());
}

std::vector<std::size_t> order_of_ranks(const WaitGraph& graph, const Why& found, const std::vector<RankRates>& rates,
                                        SortBy sort, bool all_have_room) {
  std::vector<std::size_t> order(graph.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto by = [&](const auto& key) { std::ranges::stable_sort(order, {}, key); };
  switch (sort) {
    case SortBy::interest:
      // A list that jumps about is hard to read. Of those that do the same, one that waits less holds up the others.
      if (!all_have_room)
        by([&](std::size_t i) { return std::pair(urgency(graph, found, rates, i), rates[i].waiting.value_or(1)); });
      break;
    case SortBy::rank:
      break;
    case SortBy::calls:
      by([&](std::size_t i) { return -rates[i].calls.value_or(-1); });
      break;
    case SortBy::waiting:
      by([&](std::size_t i) { return -rates[i].waiting.value_or(-1); });
      break;
    case SortBy::cpu:
      by([&](std::size_t i) { return -rates[i].cpu.value_or(-1); });
      break;
    case SortBy::memory:
      by([&](std::size_t i) { return -static_cast<double>(rates[i].rss_bytes.value_or(0)); });
      break;
  }
  return order;
}

std::vector<std::string> draw_frame(const JobStory& story, const Why& found, const std::vector<RankRates>& rates,
                                    const FrameOptions& options) {
  std::vector<std::size_t> all(story.ranks.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  const WaitGraph graph(story);
  std::vector<std::string> lines = head_of(graph, found, rates, all, options);
  constexpr std::size_t kTableHead = 2, kKeys = 1;
  const std::size_t used = lines.size() + kTableHead + kKeys;
  const std::size_t room = options.lines == 0 ? all.size() : options.lines - std::min(options.lines, used);
  const bool all_have_room = all.size() <= room;
  std::vector<std::size_t> shown = order_of_ranks(graph, found, rates, options.sort, all_have_room);
  std::vector<std::size_t> folded;
  if (!all_have_room) {
    const auto first = shown.begin() + static_cast<std::ptrdiff_t>(room - std::min<std::size_t>(room, 1));
    folded.assign(first, shown.end());
    shown.erase(first, shown.end());
  }
  for (std::string& line : RankTable(story, graph, found, rates, options).lines(shown))
    lines.push_back(std::move(line));
  if (!folded.empty()) {
    const std::string rest = fmt::format("and {} more: {}", folded.size(), states_text(graph, rates, folded));
    lines.emplace_back(tools::cut(rest, options.columns));
  }
  if (options.lines == 0) return lines;
  lines.resize(options.lines - std::min(options.lines, kKeys));
  lines.push_back(keys_of(options));
  return lines;
}

}  // namespace col::launch
