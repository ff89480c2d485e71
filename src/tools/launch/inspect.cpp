#include "launch/inspect.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <set>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "common/report.hpp"
#include "common/screen.hpp"
#include "common/text.hpp"
#include "launch/output/output.hpp"
#include "launch/place/cpu_quota.hpp"
#include "launch/place/topology.hpp"
#include "launch/processes/environment.hpp"

namespace col::launch {
namespace {

constexpr std::size_t kCommandColumns = 48;
constexpr std::size_t kGpuColumns = 12;  // "GPU-" and the eight digits by which people tell them apart

std::string gpu_text(const std::vector<std::string>& gpus) {
  std::string text;
  for (const std::string& gpu : gpus) {
    const bool is_long = gpu.starts_with("GPU-");
    text += (text.empty() ? "" : ",") + std::string(is_long ? tools::cut(gpu, kGpuColumns) : std::string_view(gpu));
  }
  return text;
}

// One column: its heading, and its text for a rank.
template <typename TextOf>
void add_column(tools::Table& table, const MappedNode& node, tools::TableColumn column, const TextOf& text_of) {
  table.columns.push_back(std::move(column));
  for (std::size_t i = 0; i < node.ranks.size(); ++i) table.rows[i].push_back({text_of(node.ranks[i])});
}

tools::Part part_of(const MappedNode& node, tools::Style style) {
  constexpr std::size_t kLeastColumns = 12;  // of what may be cut
  tools::Table table{.rows = tools::TextRows(node.ranks.size())};
  const auto any = [&](auto&& has) { return std::ranges::any_of(node.ranks, has); };
  add_column(table, node, {"rank"}, [](const MappedRank& rank) { return std::to_string(rank.rank); });
  if (any([](const MappedRank& rank) { return rank.rank != rank.local_rank; })) {
    add_column(table, node, {.name = "local rank", .goes = 2},
               [](const MappedRank& rank) { return std::to_string(rank.local_rank); });
  }
  add_column(table, node, {.name = "command", .least = kLeastColumns}, [&](const MappedRank& rank) {
    return tools::fitted(tools::one_line(tools::shell_line(rank.command), !style.utf8), kCommandColumns, style);
  });
  if (any([](const MappedRank& rank) { return !rank.cpus.empty(); })) {
    add_column(table, node, {.name = "CPUs", .least = kLeastColumns}, [](const MappedRank& rank) {
      return rank.cpus.empty() ? std::string("not bound") : cpu_list_text(rank.cpus);
    });
  }
  if (any([](const MappedRank& rank) { return !rank.gpus.empty(); })) {
    add_column(table, node, {.name = "GPUs", .goes = 1, .least = kLeastColumns},
               [](const MappedRank& rank) { return gpu_text(rank.gpus); });
  }
  add_column(table, node, {.name = "output", .least = kLeastColumns},
             [](const MappedRank& rank) { return rank.output; });
  tools::Part part{
      .title = fmt::format("node {} ({}): {}", node.node_rank, node.host, tools::counted(node.ranks.size(), "rank")),
      .tables = {std::move(table)}};
  if (!node.why_not.empty()) part.notes.push_back({"not bound to CPUs: " + node.why_not});
  return part;
}

std::string output_in_words(const OutputSpec& output, const RankNames& names) {
  const bool shown = output.console_ranks.empty() ||
                     std::binary_search(output.console_ranks.begin(), output.console_ranks.end(), names.rank);
  if (output.file_pattern.empty()) return shown ? "console" : "nowhere";
  const std::string out = expand_pattern(output.file_pattern, names, "out");
  const std::string err = expand_pattern(output.file_pattern, names, "err");
  const std::string files = out == err || output.merge || output.pty ? out : out + ", " + err;
  return output.tee && shown ? files + ", console" : files;
}

MappedNode this_node(const JobSpec& spec, const Placement& placement, const Assignment& assignment,
                     const std::string& host) {
  MappedNode node{.node_rank = assignment.node_rank, .host = host};
  node.why_not = placement.binding.why_not;
  int local_rank = 0;
  for (const Program& program : spec.programs) {
    for (int count = 0; count < program.ranks; ++count, ++local_rank) {
      const auto index = static_cast<std::size_t>(local_rank);
      MappedRank rank{.rank = assignment.first_rank + local_rank, .local_rank = local_rank, .command = program.command};
      rank.cpus = placement.binding.cpus[index];
      if (!placement.gpus.empty()) rank.gpus = {placement.gpus[index]};
      rank.output = output_in_words(spec.output, names_of(assignment, local_rank, host));
      node.ranks.push_back(std::move(rank));
    }
  }
  return node;
}

// On a host that is to be reached by ssh: its processors and devices are known there.
MappedNode other_node(const JobSpec& spec, const HostSpec& host, const Rendezvous& rendezvous) {
  MappedNode node{.node_rank = host.node_rank, .host = host.name};
  for (std::size_t program = 0; program < spec.programs.size(); ++program) {
    for (int count = remote_ranks(rendezvous, host, program); count > 0; --count)
      node.ranks.push_back(
          {.local_rank = static_cast<int>(node.ranks.size()), .command = spec.programs[program].command});
  }
  return node;
}

// By the launcher itself: standard streams, signals, epoll, what is open while a rank is started, and who asks by
// coljob or --metrics.
constexpr int kOwnFiles = 32;
constexpr int kFilesPerHost = 5;  // the streams of its ssh, and both ends of its share of the input

int files_of_ranks(const JobSpec& spec, int ranks) {
  const bool all_read = spec.input.to == InputSpec::To::all || spec.output.pty;
  const int pidfd = 1;
  return ranks *
         (Output::files_per_rank(spec.output, ranks) + (all_read ? 1 : 0) + (spec.environment.pmi ? 1 : 0) + pidfd);
}

}  // namespace

std::string render_job_map(const std::vector<MappedNode>& nodes, tools::Style style) {
  std::string text;
  for (const MappedNode& node : nodes)
    text += (text.empty() ? "" : "\n") + report_text(part_of(node, style), style, "");
  return text;
}

std::string map_text(const JobSpec& spec, const Placement& placement, const Rendezvous& rendezvous,
                     const Assignment& assignment, const std::string& host) {
  std::vector<MappedNode> nodes;
  if (assignment.local_ranks > 0) nodes.push_back(this_node(spec, placement, assignment, host));
  for (const HostSpec& remote : rendezvous.remotes) nodes.push_back(other_node(spec, remote, rendezvous));
  std::ranges::sort(nodes,
                    [](const MappedNode& left, const MappedNode& right) { return left.node_rank < right.node_rank; });
  if (!rendezvous.remotes.empty()) {
    int rank = 0;
    for (MappedNode& node : nodes) {
      for (MappedRank& entry : node.ranks) entry.rank = rank++;
    }
  }
  const std::size_t columns = tools::stdout_columns().value_or(0);
  return render_job_map(nodes, {.columns = columns, .wraps = columns > 0});
}

std::string environment_text(const JobSpec& spec, const Placement& placement, const Assignment& assignment,
                             const std::string& host) {
  const JobDirectory directory(assignment.job_id);
  Environment environment(::environ, {.spec = spec,
                                      .assignment = assignment,
                                      .directory = directory,
                                      .host = host,
                                      .cpus = [] { return usable_cpus(); },
                                      .gpus = placement.gpus});
  std::set<std::string_view> inherited;
  for (char** entry = ::environ; *entry != nullptr; ++entry) inherited.insert(*entry);
  std::string text;
  for (int rank = 0; rank < assignment.local_ranks; ++rank) {
    std::vector<std::string> lines;
    for (const char* variable : environment.of_rank(rank)) {
      // A secret is not for the screen.
      if (variable == nullptr || std::string_view(variable).starts_with("COL_STORE_TOKEN=")) continue;
      if (!inherited.contains(variable))
        lines.push_back(fmt::format("[{}] {}\n", assignment.first_rank + rank, variable));
    }
    std::ranges::sort(lines);
    for (const std::string& line : lines) text += line;
  }
  return text;
}

Needs needs_of(const JobSpec& spec, const Rendezvous& meeting) {
  const int ranks = spec.local_places();
  const auto hosts = static_cast<int>(meeting.remotes.size());
  int world = ranks, most_elsewhere = 0;
  for (const HostSpec& host : meeting.remotes) {
    int there = 0;
    for (std::size_t program = 0; program < spec.programs.size(); ++program)
      there += remote_ranks(meeting, host, program);
    world += there;
    most_elsewhere = std::max(most_elsewhere, files_of_ranks(spec, there));
  }
  // Where the nodes meet, each has a connection, and so may each rank to its store.
  const int of_meeting = meeting.alone ? 0 : meeting.max_nodes + 1 + (hosts > 0 ? world : 0);
  const int own = kOwnFiles + static_cast<int>(spec.keep_fds.size());
  const int files = own + std::max(files_of_ranks(spec, ranks) + hosts * kFilesPerHost, of_meeting);
  // The process of the meeting, and the thread of its store.
  const int meeting_here = hosts > 0 || meeting.may_serve ? 2 : 0;
  const int watcher = 1, view = spec.inspect.watch ? 1 : 0;
  return {.ranks = ranks,
          .hosts = hosts,
          .files = static_cast<rlim_t>(files),
          .files_of_all = static_cast<rlim_t>(std::max(files, kOwnFiles + most_elsewhere)),
          .processes = ranks + hosts + watcher + meeting_here + view};
}

}  // namespace col::launch
