#include "launch/inspect.hpp"

#include <unistd.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "common/style.hpp"
#include "launch/place/cpu_quota.hpp"
#include "launch/place/job_map.hpp"
#include "launch/processes/environment.hpp"

namespace col::launch {
namespace {

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
  int local_rank = 0;
  for (const Program& program : spec.programs) {
    for (int count = 0; count < program.ranks; ++count, ++local_rank) {
      const auto index = static_cast<std::size_t>(local_rank);
      MappedRank rank{.rank = assignment.first_rank + local_rank, .local_rank = local_rank, .command = program.command};
      if (!placement.masks.empty()) rank.cpus = placement.binding.cpus[index];
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

}  // namespace

std::string map_text(const JobSpec& spec, const Placement& placement, const Rendezvous& rendezvous,
                     const Assignment& assignment, const std::string& host) {
  JobMap map;
  if (assignment.local_ranks > 0) map.nodes.push_back(this_node(spec, placement, assignment, host));
  for (const HostSpec& remote : rendezvous.remotes) map.nodes.push_back(other_node(spec, remote, rendezvous));
  std::sort(map.nodes.begin(), map.nodes.end(),
            [](const MappedNode& left, const MappedNode& right) { return left.node_rank < right.node_rank; });
  if (!rendezvous.remotes.empty()) {
    int rank = 0;
    for (MappedNode& node : map.nodes) {
      for (MappedRank& entry : node.ranks) entry.rank = rank++;
    }
  }
  return render_job_map(map, tools::Style());
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
    std::sort(lines.begin(), lines.end());
    for (const std::string& line : lines) text += line;
  }
  return text;
}

}  // namespace col::launch
