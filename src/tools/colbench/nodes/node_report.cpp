#include "colbench/nodes/node_report.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "colbench/p2p/heat_map.hpp"
#include "colbench/plans/notation.hpp"
#include "colbench/report/values.hpp"
#include "common/report.hpp"
#include "common/text.hpp"

namespace col::colbench {
namespace {

constexpr double kShare = 0.5;  // of what most nodes have
constexpr double kSlow = 2;     // times the median
constexpr double kClock = 1;    // second
constexpr double kMiB = 1024 * 1024;

// What a job can have too little of.
struct Resource {
  std::string_view name;
  double NodeFacts::*amount;
  double least;  // for any job
  std::string (*text)(double);
  std::string_view advice;
};

std::string number_text(double number) {
  return number >= kUnlimited ? "unlimited" : tools::grouped(static_cast<std::size_t>(number));
}
std::string bytes_text(double bytes) {
  return bytes >= kUnlimited ? "unlimited" : rough_size_text(static_cast<std::size_t>(bytes));
}

constexpr std::array kResources = {
    Resource{"processors", &NodeFacts::processors, 1, number_text,
             "something else is bound or limited to a part of it"},
    Resource{"free memory", &NodeFacts::memory_free, 256 * kMiB, bytes_text, "see with top who uses it"},
    Resource{"/dev/shm", &NodeFacts::shm_free, 64 * kMiB, bytes_text, "remount it larger, or clear what lies there"},
    Resource{"open files", &NodeFacts::open_files, 256, number_text, "raise ulimit -n there"},
    Resource{"locked memory", &NodeFacts::locked_memory, 0, bytes_text, "raise ulimit -l there"},
};

// What most have: of two, the greater.
double usual(const std::vector<NodeFacts>& nodes, double NodeFacts::*amount) {
  std::vector<double> values;
  for (const NodeFacts& node : nodes) values.push_back(node.*amount);
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

std::string usual_version(const std::vector<NodeFacts>& nodes) {
  std::map<std::string, int> count;
  for (const NodeFacts& node : nodes) ++count[node.version];
  return std::max_element(count.begin(), count.end(), [](const auto& a, const auto& b) { return a.second < b.second; })
      ->first;
}

constexpr std::string_view kVersion = "col", kClockAhead = "clock", kLatency = "latency", kBandwidth = "bandwidth";

std::string clock_text(const NodeFacts& node, bool utf8) {
  // Of an offset that may be none, no digit counts.
  if (std::abs(node.clock_ahead) <= node.clock_uncertain)
    return fmt::format("{} {}", utf8 ? "±" : "+-", time_text(node.clock_uncertain));
  return fmt::format("{}{}", node.clock_ahead < 0 ? "-" : "+", time_text(std::abs(node.clock_ahead)));
}

// One of the two columns about pairs. `seconds(pair)`: small is good.
struct Speed {
  std::string_view name;
  double (*seconds)(const NodePair&);
  std::string (*text)(double seconds);
  std::string_view advice;
};

constexpr std::array kSpeeds = {
    Speed{kLatency, [](const NodePair& pair) { return pair.latency; },
          [](double seconds) { return time_text(seconds); },
          "its processors may be busy, or its way through the network long"},
    Speed{kBandwidth, [](const NodePair& pair) { return pair.bandwidth > 0 ? 1 / pair.bandwidth : 0; },
          [](double seconds) { return seconds > 0 ? speed_text(1 / seconds) : std::string("-"); },
          "look at its link (ethtool), its cable and the port of its switch"},
};

std::vector<PairTime> times_of(const std::vector<NodePair>& pairs, const Speed& speed) {
  std::vector<PairTime> times;
  for (const NodePair& pair : pairs)
    times.push_back({pair.first, pair.second, speed.seconds(pair), speed.seconds(pair)});
  return times;
}

void add_slow(const std::vector<NodeFacts>& nodes, const std::vector<NodePair>& pairs, const Speed& speed,
              std::vector<Oddity>& odd) {
  const std::vector<PairTime> times = times_of(pairs, speed);
  const Outliers found = find_outliers(static_cast<int>(nodes.size()), times);
  const auto host = [&](int node) { return nodes[static_cast<std::size_t>(node)].host; };
  for (const Outliers::Rank& slow : found.ranks) {
    if (slow.ratio < kSlow) continue;
    odd.push_back({slow.rank, slow.rank, std::string(speed.name),
                   fmt::format("{}: {} with everybody: {}, and others have {}; {}", host(slow.rank), speed.name,
                               speed.text(slow.seconds), speed.text(slow.seconds / slow.ratio), speed.advice)});
  }
  for (const Outliers::Pair& slow : found.pairs) {
    if (slow.ratio < kSlow) continue;
    odd.push_back({slow.time.first, slow.time.second, std::string(speed.name),
                   fmt::format("{} and {}: {} with each other: {}, and others have {}; look at what lies between them",
                               host(slow.time.first), host(slow.time.second), speed.name, speed.text(slow.time.seconds),
                               speed.text(found.median))});
  }
}

bool is_odd(const std::vector<Oddity>& odd, int node, std::string_view what) {
  return std::any_of(odd.begin(), odd.end(), [&](const Oddity& oddity) {
    return (oddity.node == node || oddity.other == node) && oddity.what == what;
  });
}

// With its faster half of nodes: a slow peer is the peer's fault.
std::string speed_cell(const std::vector<NodePair>& pairs, int node, const Speed& speed) {
  std::vector<double> own;
  for (const NodePair& pair : pairs) {
    if (pair.first == node || pair.second == node) own.push_back(speed.seconds(pair));
  }
  return own.empty() ? "-" : speed.text(lower_median(std::move(own)));
}

}  // namespace

std::vector<Oddity> oddities_of(const std::vector<NodeFacts>& nodes, const std::vector<NodePair>& pairs) {
  std::vector<Oddity> odd;
  const std::string version = usual_version(nodes);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const NodeFacts& node = nodes[i];
    const int number = static_cast<int>(i);
    const auto add = [&](std::string_view what, const std::string& rest) {
      odd.push_back({number, number, std::string(what), fmt::format("{}: {}: {}", node.host, what, rest)});
    };
    if (node.version != version)
      add(kVersion, fmt::format("{}, and the others have {}; install one of them everywhere", node.version, version));
    for (const Resource& resource : kResources) {
      const double amount = node.*resource.amount, most = usual(nodes, resource.amount);
      if (amount < kShare * most)
        add(resource.name,
            fmt::format("{}, and others have {}; {}", resource.text(amount), resource.text(most), resource.advice));
      else if (amount < resource.least)
        add(resource.name, fmt::format("{}, and a job needs {}; {}", resource.text(amount),
                                       resource.text(resource.least), resource.advice));
    }
    if (std::abs(node.clock_ahead) > kClock + node.clock_uncertain)
      add(kClockAhead,
          fmt::format("{} of {}'s; times in logs and of files will mislead: synchronise it (chronyc makestep)",
                      clock_text(node, true), nodes.front().host));
  }
  for (const Speed& speed : kSpeeds) add_slow(nodes, pairs, speed, odd);
  return odd;
}

std::string node_report_text(const NodeReport& report, tools::Style style) {
  tools::Table table{.columns = {{"node", true}, {"host"}, {std::string(kVersion)}}};
  for (const Resource& resource : kResources) table.columns.push_back({std::string(resource.name), true});
  for (const std::string_view name : {kClockAhead, kLatency, kBandwidth})
    table.columns.push_back({std::string(name), true});
  for (std::size_t i = 0; i < report.nodes.size(); ++i) {
    const NodeFacts& node = report.nodes[i];
    const int number = static_cast<int>(i);
    tools::TextRow& row = table.rows.emplace_back();
    row = {{fmt::format("{}", i)}, {node.host}};
    const auto add = [&](std::string_view what, const std::string& text) {
      const bool odd = is_odd(report.odd, number, what);
      row.push_back({odd ? text + " *" : text, odd ? tools::Tone::bad : tools::Tone::plain});
    };
    add(kVersion, node.version);
    for (const Resource& resource : kResources) add(resource.name, resource.text(node.*resource.amount));
    add(kClockAhead, i == 0 ? "-" : clock_text(node, style.utf8));
    for (const Speed& speed : kSpeeds) add(speed.name, speed_cell(report.pairs, number, speed));
  }
  tools::Part part{.tables = {std::move(table)}};
  std::set<std::string> unfit;
  for (const Oddity& oddity : report.odd) {
    part.notes.push_back({oddity.sentence});
    unfit.insert(report.nodes[static_cast<std::size_t>(oddity.node)].host);
    unfit.insert(report.nodes[static_cast<std::size_t>(oddity.other)].host);
  }
  if (unfit.empty())
    part.notes.push_back({fmt::format("fit: nothing stands out{}",
                                      report.nodes.size() < 3 ? " (of two nodes, none can be the slower one)" : "")});
  else
    part.notes.push_back(
        {fmt::format("unfit: mend what has a star, or start the job without {}", fmt::join(unfit, ", "))});
  return report_text(part, style, "");
}

}  // namespace col::colbench
