#include "launch/place/job_map.hpp"

#include <algorithm>
#include <cstddef>
#include <string_view>

#include <fmt/format.h>

#include "common/table.hpp"
#include "common/text.hpp"
#include "launch/place/cpu_list.hpp"

namespace col::launch {
namespace {

constexpr std::size_t kCommandColumns = 48;
constexpr std::size_t kGpuColumns = 12;  // "GPU-" and the eight digits by which people tell them apart

// Words as a shell would take them.
std::string command_text(const std::vector<std::string>& command, tools::Style style) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=.,/:@%";
  std::string line;
  for (const std::string& word : command) {
    const bool is_plain = !word.empty() && word.find_first_not_of(kPlain) == std::string::npos;
    line += (line.empty() ? "" : " ") + (is_plain ? word : tools::shell_quoted(word));
  }
  line = tools::one_line(line, !style.utf8);
  if (tools::columns_of(line) <= kCommandColumns) return line;
  const std::string_view ellipsis = style.ellipsis();
  return std::string(tools::cut(line, kCommandColumns - tools::columns_of(ellipsis))) + std::string(ellipsis);
}

std::string gpu_text(const std::vector<std::string>& gpus) {
  std::string text;
  for (const std::string& gpu : gpus) {
    const bool is_long = gpu.starts_with("GPU-");
    text += (text.empty() ? "" : ",") + std::string(is_long ? tools::cut(gpu, kGpuColumns) : std::string_view(gpu));
  }
  return tools::one_line(text, true);
}

// One column: its heading, and its text for a rank.
template <typename TextOf>
void add_column(std::vector<std::vector<tools::TextCell>>& rows, const MappedNode& node, std::string heading,
                const TextOf& text_of) {
  rows.front().push_back({std::move(heading)});
  for (std::size_t i = 0; i < node.ranks.size(); ++i) rows[i + 1].push_back({text_of(node.ranks[i])});
}

std::string render_node(const MappedNode& node, tools::Style style) {
  std::vector<std::vector<tools::TextCell>> rows(node.ranks.size() + 1);
  const auto any = [&](auto&& has) { return std::any_of(node.ranks.begin(), node.ranks.end(), has); };
  add_column(rows, node, "rank", [](const MappedRank& rank) { return std::to_string(rank.rank); });
  if (any([](const MappedRank& rank) { return rank.rank != rank.local_rank; })) {
    add_column(rows, node, "local rank", [](const MappedRank& rank) { return std::to_string(rank.local_rank); });
  }
  add_column(rows, node, "command", [&](const MappedRank& rank) { return command_text(rank.command, style); });
  if (any([](const MappedRank& rank) { return !rank.cpus.empty(); })) {
    add_column(rows, node, "CPUs", [](const MappedRank& rank) {
      return rank.cpus.empty() ? std::string("not bound") : cpu_list_text(rank.cpus);
    });
  }
  if (any([](const MappedRank& rank) { return !rank.gpus.empty(); })) {
    add_column(rows, node, "GPUs", [](const MappedRank& rank) { return gpu_text(rank.gpus); });
  }
  add_column(rows, node, "output", [&](const MappedRank& rank) { return tools::one_line(rank.output, !style.utf8); });
  return tools::render_table(rows, style);
}

}  // namespace

std::string render_job_map(const JobMap& map, tools::Style style) {
  std::string text;
  for (const MappedNode& node : map.nodes) {
    if (!text.empty()) text += '\n';
    text += fmt::format("node {} ({}): {}\n", node.node_rank, tools::one_line(node.host, !style.utf8),
                        tools::counted(node.ranks.size(), "rank"));
    text += render_node(node, style);
  }
  return text;
}

}  // namespace col::launch
