#include "launch/report/why_table.hpp"

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "common/table.hpp"
#include "common/text.hpp"
#include "launch/report/rank_words.hpp"
#include "launch/report/wait_graph.hpp"

namespace col::launch {
namespace {

constexpr std::size_t kMaxRows = 24;

std::string_view name(RankState state, const RankStory& rank) {
  switch (state) {
    case RankState::inside:
      return "in a call";
    case RankState::waiting:
      return "waiting";
    case RankState::stopped:
      return "stopped";
    case RankState::left:
      return "left";
    case RankState::dead:
      return rank.last ? "dead" : "ended";
    default:
      return rank.last ? "computing" : "not in col";
  }
}

struct Row {
  std::vector<int> ranks;
  std::vector<std::int64_t> pids;
  double since = 0;
};

// What it is in, or was in last.
std::string call_of(const RankStory& rank, RankState state) {
  if (!rank.last || rank.last->op.empty()) return "";
  const bool is_in = state == RankState::waiting || state == RankState::inside || is_in_call(rank);
  RankActivity call = *rank.last;
  call.names.label = label_of(rank);
  const CallProgress& progress = call.progress;
  const std::string far =
      is_in && progress.rounds > 1 ? fmt::format(", in round {} of {}", progress.round + 1, progress.rounds) : "";
  return (is_in ? "" : "after ") + describe_fully(call) + far;
}

// The ranks that it waits for.
std::string awaited_by(const WaitGraph& graph, std::size_t index) {
  std::vector<int> awaited;
  for (const WaitEdge& edge : graph.edges()) {
    if (edge.from == index) awaited.push_back(graph.rank(edge.to).rank);
  }
  std::ranges::sort(awaited);
  const std::string names = awaited.empty() ? "" : name_ranks(awaited);
  return names.substr(std::min(names.find(' ') + 1, names.size()));
}

}  // namespace

std::string_view state_of_rank(const WaitGraph& graph, std::size_t index) {
  return name(graph.state(index), graph.rank(index));
}

std::vector<std::string> why_lines(const JobStory& story, const Why& found, tools::Style style) {
  std::vector<std::string> lines = {tools::one_line(found.sentence, !style.utf8)};
  const WaitGraph graph(story);
  std::map<std::tuple<std::string, std::string, std::string>, std::size_t> known;
  std::vector<std::pair<std::tuple<std::string, std::string, std::string>, Row>> rows;
  for (std::size_t i = 0; i < graph.size(); ++i) {
    const RankStory& rank = graph.rank(i);
    const std::tuple key(std::string(name(graph.state(i), rank)), call_of(rank, graph.state(i)), awaited_by(graph, i));
    const auto [at, is_new] = known.emplace(key, rows.size());
    if (is_new) rows.push_back({key, {}});
    Row& row = rows[at->second].second;
    row.ranks.push_back(rank.rank);
    row.pids.push_back(rank.status.pid);
    row.since = std::max(row.since, graph.since(i));
  }
  std::vector<std::vector<tools::TextCell>> cells = {
      {{"ranks"}, {"pid"}, {"state"}, {"since"}, {"waits for"}, {"call"}}};
  for (const auto& [key, row] : rows) {
    if (cells.size() > kMaxRows) break;
    const auto& [state, call, awaited] = key;
    const std::string ranks = name_ranks(row.ranks);
    cells.push_back({{ranks.substr(ranks.find(' ') + 1)},
                     {row.pids.size() == 1 && row.pids.front() != 0 ? fmt::to_string(row.pids.front()) : ""},
                     {state},
                     {row.since > 0 ? tools::in_words(row.since) : ""},
                     {awaited},
                     {tools::one_line(call, !style.utf8)}});
  }
  for (std::string& line : tools::lines_of(tools::render_table(cells, style))) lines.push_back(std::move(line));
  if (rows.size() > kMaxRows)
    lines.push_back(fmt::format("and {} more", tools::counted(rows.size() - kMaxRows, "row")));
  for (const SilentNode& node : story.silent)
    lines.push_back(
        tools::one_line(name_silent_node(node) + " has not answered: its ranks are not shown", !style.utf8));
  return lines;
}

}  // namespace col::launch
