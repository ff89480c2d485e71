#include "launch/report/metrics_text.hpp"

#include <iterator>
#include <map>
#include <string_view>

#include <fmt/format.h>

#include "common/text.hpp"
#include "launch/report/wait_graph.hpp"
#include "launch/report/why.hpp"
#include "launch/report/why_table.hpp"

namespace col::launch {
namespace {

// A label's value, with its quotes.
std::string in_quotes(std::string_view text) {
  std::string out = "\"";
  for (const char letter : tools::clean(std::string(text))) {
    if (letter == '\n') {
      out += "\\n";
      continue;
    }
    if (letter == '"' || letter == '\\') out += '\\';
    out += letter;
  }
  return out + '"';
}

class Page {
 public:
  void metric(std::string_view name, std::string_view kind, std::string_view help) {
    name_ = name;
    fmt::format_to(std::back_inserter(text_), "# HELP {0} {1}\n# TYPE {0} {2}\n", name, help, kind);
  }
  template <class Value>
  void value(const Value& value, std::string_view labels = {}) {
    const std::string braced = labels.empty() ? std::string() : fmt::format("{{{}}}", labels);
    fmt::format_to(std::back_inserter(text_), "{}{} {}\n", name_, braced, value);
  }
  std::string take() { return std::move(text_); }

 private:
  std::string name_, text_;
};

}  // namespace

std::string metrics_text(const JobStory& story) {
  Page page;
  const auto labels_of = [&](const RankStory& rank) {
    const std::string host = story.nodes > 1 ? fmt::format(",host={}", in_quotes(rank.host)) : "";
    return fmt::format("rank=\"{}\"{}", rank.rank, host);
  };
  const WaitGraph graph(story);
  page.metric("col_job_info", "gauge", "The job that this page is about.");
  page.value(
      1, fmt::format("job={},command={}", in_quotes(story.job_id), in_quotes(tools::shell_line(story.command_line))));
  page.metric("col_job_seconds", "gauge", "Time since the job began.");
  page.value(story.seconds);
  page.metric("col_job_restarts_total", "counter", "How often all ranks were started again.");
  page.value(story.restarts);

  std::map<std::string, int> states;
  int failed = 0;
  for (std::size_t i = 0; i < graph.size(); ++i) {
    const RankStory& rank = graph.rank(i);
    ++states[std::string(state_of_rank(graph, i))];
    failed += rank.status.exited && rank.status.wait_status != 0 ? 1 : 0;
  }
  page.metric("col_ranks", "gauge", "Ranks by what they do.");
  for (const auto& [state, count] : states) page.value(count, fmt::format("state={}", in_quotes(state)));
  page.metric("col_ranks_failed", "gauge", "Ranks that have failed since the last start.");
  page.value(failed);

  page.metric("col_hosts_silent", "gauge", "Hosts that have not answered: their ranks are not on this page.");
  page.value(story.silent.size());

  page.metric("col_group_calls_total", "counter", "Collectives of a rank in a group.");
  for (const RankStory& rank : story.ranks) {
    for (const RecordedGroup& group : rank.history.groups)
      page.value(group.last, fmt::format("group={},{}", in_quotes(group.name), labels_of(rank)));
  }
  page.metric("col_rank_waiting_seconds", "gauge", "How long a rank has waited in its call; only ranks that wait.");
  for (std::size_t i = 0; i < graph.size(); ++i) {
    if (!graph.waits(i)) continue;
    const RankActivity& call = *graph.rank(i).last;
    page.value(graph.since(i),
               fmt::format("group={},call={},{}", in_quotes(call.group), in_quotes(call.op), labels_of(graph.rank(i))));
  }
  const Why found = why(story);
  page.metric("col_held_up_seconds", "gauge",
              "How long ranks have waited for the one that holds them up; see coljob why.");
  page.value(found.cause == Why::Cause::nothing ? 0.0 : found.seconds,
             fmt::format("cause={}", in_quotes(to_string(found.cause))));
  return page.take();
}

}  // namespace col::launch
