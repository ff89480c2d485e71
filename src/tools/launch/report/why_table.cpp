#include "launch/report/why.hpp"

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include <fmt/format.h>

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
      if (rank.is_spare) return "asleep";
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

}  // namespace

std::string_view state_of_rank(const WaitGraph& graph, std::size_t index) {
  return name(graph.state(index), graph.rank(index));
}

tools::Part why_part(const JobStory& story, const Why& found) {
  const WaitGraph graph(story);
  std::map<std::tuple<std::string, std::string, std::string>, std::size_t> known;
  std::vector<std::pair<std::tuple<std::string, std::string, std::string>, Row>> rows;
  for (std::size_t i = 0; i < graph.size(); ++i) {
    const RankStory& rank = graph.rank(i);
    const std::tuple key(std::string(name(graph.state(i), rank)), call_of(rank, graph.state(i)),
                         tools::ranges_text(graph.awaited_by(i)));
    const auto [at, is_new] = known.emplace(key, rows.size());
    if (is_new) rows.push_back({key, {}});
    Row& row = rows[at->second].second;
    row.ranks.push_back(rank.rank);
    row.pids.push_back(rank.status.pid);
    row.since = std::max(row.since, graph.since(i));
  }
  constexpr std::size_t kLeastCall = 20;
  tools::Table table{.columns = {{"ranks"},
                                 {.name = "pid", .goes = 2},
                                 {"state"},
                                 {.name = "since", .goes = 1},
                                 {"waits for"},
                                 {.name = "call", .least = kLeastCall}}};
  for (const auto& [key, row] : rows) {
    if (table.rows.size() == kMaxRows) break;
    const auto& [state, call, awaited] = key;
    table.rows.push_back({{tools::ranges_text(row.ranks)},
                          {row.pids.size() == 1 && row.pids.front() != 0 ? fmt::to_string(row.pids.front()) : ""},
                          {state},
                          {row.since > 0 ? tools::in_words(row.since) : ""},
                          {awaited},
                          {call}});
  }
  tools::Part part{.lead = {{found.sentence}}, .tables = {std::move(table)}};
  if (rows.size() > kMaxRows)
    part.notes.push_back({fmt::format("and {} more", tools::counted(rows.size() - kMaxRows, "row"))});
  for (const SilentNode& node : story.silent)
    part.notes.push_back({name_silent_node(node) + " has not answered: its ranks are not shown"});
  return part;
}

}  // namespace col::launch
