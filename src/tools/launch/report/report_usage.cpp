#include "launch/report/report.hpp"

#include <algorithm>
#include <functional>
#include <utility>

#include <fmt/format.h>

#include "common/report.hpp"
#include "common/text.hpp"
#include "launch/place/topology.hpp"
#include "launch/report/rank_words.hpp"

namespace col::launch {
namespace {

using Ranks = std::vector<const RankStory*>;

struct Column {
  const char* title;
  std::function<double(const RankStory&)> value;
  std::function<std::string(double)> text;
};

// "0.8 ms", "3.21 s", "10 min 5 s".
std::string duration(double seconds) {
  if (seconds < 0.9995) return fmt::format("{:.1f} ms", seconds * 1e3);
  return seconds < 99.995 ? fmt::format("{:.2f} s", seconds) : tools::in_words(seconds);
}

double end_of(const RankStory& rank) {
  return rank.status.started + rank.status.seconds;
}

std::vector<Column> columns() {
  const auto bytes = [](double value) { return describe_bytes(static_cast<std::uint64_t>(value)); };
  return {{"started", [](const RankStory& rank) { return rank.status.started; }, duration},
          {"ended", end_of, duration},
          {"CPU time", [](const RankStory& rank) { return rank.status.cpu_seconds; }, duration},
          {"peak RSS", [](const RankStory& rank) { return static_cast<double>(rank.status.peak_rss_bytes); }, bytes}};
}

// By that column, the least first; ranks that are equal in it in their order.
Ranks sorted_by(Ranks ranks, const Column& column) {
  std::ranges::stable_sort(ranks,
                           [&](const RankStory* a, const RankStory* b) { return column.value(*a) < column.value(*b); });
  return ranks;
}

// "within 3.1 ms (first rank 0, last rank 3)"
std::string skew(const Ranks& ranks, const Column& column) {
  const Ranks sorted = sorted_by(ranks, column);
  return fmt::format("within {} (first rank {}, last rank {})",
                     duration(column.value(*sorted.back()) - column.value(*sorted.front())), sorted.front()->rank,
                     sorted.back()->rank);
}

tools::Table table_of_ranks(const Ranks& ranks, bool with_hosts) {
  tools::Table table{.columns = {{"rank"}}};
  const bool any_bound = std::ranges::any_of(ranks, [](const RankStory* rank) { return !rank->cpus.empty(); });
  if (with_hosts) table.columns.push_back({"host"});
  if (any_bound) table.columns.push_back({"CPUs"});
  for (const Column& column : columns()) table.columns.push_back({column.title});
  for (const RankStory* rank : ranks) {
    tools::TextRow& row = table.rows.emplace_back(tools::TextRow{{fmt::to_string(rank->rank)}});
    if (with_hosts) row.push_back({rank->host});
    if (any_bound) row.push_back({rank->cpus.empty() ? "not bound" : cpu_list_text(rank->cpus)});
    for (const Column& column : columns()) row.push_back({column.text(column.value(*rank))});
  }
  return table;
}

tools::Table table_of_extremes(const Ranks& ranks) {
  tools::Table table{.columns = {{""}}, .rows = {{{"least"}}, {{"median"}}, {{"most"}}}};
  for (const Column& column : columns()) {
    const Ranks sorted = sorted_by(ranks, column);
    const auto named = [&](const RankStory& rank) {
      return fmt::format("{} (rank {})", column.text(column.value(rank)), rank.rank);
    };
    const std::size_t middle = sorted.size() / 2;
    const double median = sorted.size() % 2 == 1
                              ? column.value(*sorted[middle])
                              : (column.value(*sorted[middle - 1]) + column.value(*sorted[middle])) / 2;
    table.columns.push_back({column.title});
    table.rows[0].push_back({named(*sorted.front())});
    table.rows[1].push_back({column.text(median)});
    table.rows[2].push_back({named(*sorted.back())});
  }
  return table;
}

// One line for each node on which ranks are not bound though they could have been.
std::vector<tools::Note> notes_of_unbound(const Ranks& ranks, bool with_hosts) {
  std::vector<tools::Note> notes;
  for (std::size_t i = 0; i < ranks.size();) {
    const RankStory& first = *ranks[i];
    std::vector<int> numbers;
    for (; i < ranks.size() && ranks[i]->host == first.host && ranks[i]->why_not == first.why_not; ++i)
      numbers.push_back(ranks[i]->rank);
    if (first.why_not.empty()) continue;
    notes.push_back(
        {fmt::format("{}{} {} not bound to CPUs: {}", name_ranks(numbers), with_hosts ? " on " + first.host : "",
                     numbers.size() == 1 ? "is" : "are", first.why_not)});
  }
  return notes;
}

}  // namespace

tools::Part usage_part(const JobStory& story) {
  Ranks ranks;
  for (const RankStory& rank : story.ranks) {
    if (rank.status.pid != 0 && rank.status.exited) ranks.push_back(&rank);
  }
  if (ranks.empty()) return {};
  const std::vector<Column> all = columns();
  const bool with_hosts = story.nodes > 1;
  return {.lead = {{fmt::format("{} in {}: started {}; ended {}", tools::counted(ranks.size(), "rank"),
                                tools::in_words(story.seconds), skew(ranks, all[0]), skew(ranks, all[1]))}},
          .tables = {ranks.size() <= kMaxTableRanks ? table_of_ranks(ranks, with_hosts) : table_of_extremes(ranks)},
          .notes = notes_of_unbound(ranks, with_hosts)};
}

tools::Part epochs_part(const JobStory& story) {
  if (story.epochs.empty()) return {};
  const auto names = [](const std::vector<int>& ranks) { return ranks.empty() ? "" : name_ranks(ranks); };
  tools::Table table{.columns = {{"epoch"},
                                 {"began"},
                                 {"ranks", true},
                                 {"lost"},
                                 {"left out", false, 1},
                                 {"new"},
                                 {"roll call"},
                                 {"connect"},
                                 {"open"}}};
  for (const EpochStory& epoch : story.epochs) {
    const core::EpochLine& line = epoch.line;
    table.rows.push_back({{fmt::to_string(line.epoch)},
                          {duration(epoch.at)},
                          {fmt::to_string(line.ranks.size())},
                          {names(line.lost)},
                          {names(line.left_out)},
                          {names(line.newcomers)},
                          {duration(line.roll_call)},
                          {duration(line.connect)},
                          {duration(line.open)}});
  }
  return {.tables = {std::move(table)}};
}

}  // namespace col::launch
