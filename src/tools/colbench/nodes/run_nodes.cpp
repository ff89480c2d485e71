// colbench nodes, one rank on each node: whether the nodes are fit for a job. colrun --check-nodes starts it.
#include <sys/resource.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include <col/group.hpp>

#include "colbench/commands/command.hpp"
#include "colbench/commands/options.hpp"
#include "colbench/nodes/node_report.hpp"
#include "colbench/p2p/heat_map.hpp"
#include "common/exit_codes.hpp"
#include "common/write_file.hpp"
#include "core/clock/clock.hpp"
#include "json/json_fields.hpp"
#include "launch/job/assignment.hpp"
#include "launch/job/small_file.hpp"
#include "launch/place/cpu_quota.hpp"

namespace col::colbench {
namespace {

using Clock = core::Clock;

constexpr const char* kNodesUsage = "Usage: colrun [--host A,B,C] -n 1 colbench nodes [--json FILE]";
constexpr const char* kNodesFooter =
    R"(Looks at the nodes of a job before it starts; colrun --check-nodes starts it with one rank on each. Prints what each
node has, the offset of its clock, and latency and bandwidth to the others (the median of its pairs), and marks with a
star what is odd: less than half of what most have, twice as slow as others, a clock that is a second off.

Examples:
  colrun --check-nodes --host node1,node2,node3
  srun --nodes=4 --ntasks-per-node=1 colrun --check-nodes

Exit code: 0 the nodes are fit; 4 something is odd; 2 usage; 3 time is up; 5 a rank died.)";

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// ---- What a node has ------------------------------------------------------------------------------------------------

double soft_limit(decltype(RLIMIT_NOFILE) which) {
  rlimit limit{};
  getrlimit(which, &limit);
  return limit.rlim_cur == RLIM_INFINITY ? kUnlimited : static_cast<double>(limit.rlim_cur);
}

double available_memory() {
  const std::string text = launch::read_small_file("/proc/meminfo").value_or("");
  return std::atof(std::string(launch::field(text, "MemAvailable")).c_str()) * 1024;  // "123 kB"
}

NodeFacts own_facts() {
  NodeFacts facts;
  facts.host = launch::host_name();
  facts.version = version();
  facts.processors = launch::usable_cpus();
  facts.memory_free = available_memory();
  struct statvfs shm {};
  if (statvfs("/dev/shm", &shm) == 0)
    facts.shm_free = static_cast<double>(shm.f_bavail) * static_cast<double>(shm.f_frsize);
  facts.open_files = soft_limit(RLIMIT_NOFILE);
  facts.locked_memory = soft_limit(RLIMIT_MEMLOCK);
  return facts;
}

// ---- What they say to each other ------------------------------------------------------------------------------------

// Each of two sends `count` bytes and gets as many. Half of the time.
double half_round_trip(Group& world, std::vector<std::uint8_t>& bytes, std::size_t count, int peer, bool leads) {
  const std::span<std::uint8_t> part(bytes.data(), count);
  const auto begin = Clock::now();
  if (leads) world.send(part, peer);
  world.recv(part, peer);
  if (!leads) world.send(part, peer);
  return seconds_since(begin) / 2;
}

constexpr std::size_t kSmall = 8, kFirst = 64 << 10, kLargest = 64 << 20;
constexpr int kWarmUp = 5, kRoundTrips = 40;
constexpr double kLongEnough = 0.05;  // seconds that a message should take, so that the link decides

// The one that leads says which size is next; 0 ends it.
NodePair measure_pair(Group& world, int peer) {
  const bool leads = world.rank() < peer;
  NodePair pair{std::min(world.rank(), peer), std::max(world.rank(), peer)};
  std::vector<std::uint8_t> bytes(kSmall);
  std::vector<double> times;
  for (int i = -kWarmUp; i < kRoundTrips; ++i) {
    const double time = half_round_trip(world, bytes, kSmall, peer, leads);
    if (i >= 0) times.push_back(time);
  }
  pair.latency = lower_median(times);
  std::array<std::uint64_t, 1> size = {kFirst};
  while (true) {
    if (leads)
      world.send(size, peer);
    else
      world.recv(size, peer);
    if (size[0] == 0) return pair;
    bytes.resize(size[0]);
    const double time = half_round_trip(world, bytes, size[0], peer, leads);
    pair.bandwidth = static_cast<double>(size[0]) / time;
    if (leads) size[0] = time >= kLongEnough || size[0] >= kLargest ? 0 : size[0] * 2;
  }
}

// As in a tournament: in each of its rounds every node has one partner at most, so no two pairs share a node.
std::vector<NodePair> measure_own_pairs(Group& world) {
  std::vector<NodePair> own;
  const int seats = world.size() + world.size() % 2;  // an odd one pauses
  for (int round = 0; round + 1 < seats; ++round) {
    const int last = seats - 1, rank = world.rank();
    int peer = rank == last ? round : ((2 * round - rank) % last + last) % last;
    if (peer == rank) peer = last;
    if (peer < world.size()) {
      const NodePair pair = measure_pair(world, peer);
      if (rank < peer) own.push_back(pair);
    }
    world.barrier();
  }
  return own;
}

double wall_clock() {
  return std::chrono::duration<double>(core::wall_now().time_since_epoch()).count();
}

// On rank 0: what the clock of `peer` is ahead, from the quickest of some questions.
void compare_clocks(Group& world, int peer, NodeFacts& facts) {
  double best = 1e9;
  for (int i = 0; i < kRoundTrips; ++i) {
    std::array<double, 1> there = {0};
    const double asked = wall_clock();
    const auto begin = Clock::now();
    world.send(there, peer);
    world.recv(there, peer);
    const double took = seconds_since(begin);
    if (took >= best) continue;
    best = took;
    facts.clock_ahead = there[0] - (asked + took / 2);
    facts.clock_uncertain = took / 2;
  }
}
void show_clock(Group& world) {
  for (int i = 0; i < kRoundTrips; ++i) {
    std::array<double, 1> here = {0};
    world.recv(here, 0);
    here[0] = wall_clock();
    world.send(here, 0);
  }
}

// On rank 0 the report; on the others nothing.
NodeReport look_at_nodes(Group& world) {
  NodeReport report{.nodes = {own_facts()}};  // before what follows uses memory
  report.pairs = measure_own_pairs(world);
  if (world.rank() > 0) {
    world.send_object(core::json_line(report), 0);
    show_clock(world);
    return {};
  }
  for (int rank = 1; rank < world.size(); ++rank) {
    const auto theirs = core::parsed_json<NodeReport>(world.recv_object<std::string>(rank), "what a node says");
    report.nodes.push_back(theirs.nodes.at(0));
    report.pairs.insert(report.pairs.end(), theirs.pairs.begin(), theirs.pairs.end());
    compare_clocks(world, rank, report.nodes.back());
  }
  report.odd = oddities_of(report.nodes, report.pairs);
  return report;
}

}  // namespace

int run_nodes(const Invocation& invocation) {
  std::string json;
  CommandLine line("colbench nodes", kNodesUsage, kNodesFooter);
  line.add_option("Output", "--json", json, "FILE", "the report as JSON; -: to stdout, in place of the table");
  if (!line.parse(invocation.arguments, 0)) return tools::exit_code::kSuccess;
  Context& context = Context::current();
  if (context.spec().launcher.empty())
    throw UsageError("nodes looks at several: colrun --check-nodes --host node1,node2,node3 starts it on each of them");
  Group world = init();
  const NodeReport report = look_at_nodes(world);
  int code = tools::exit_code::kSuccess;
  if (world.rank() == 0) {
    if (!report.odd.empty()) code = tools::exit_code::kRegression;
    const std::string document = json.empty() ? "" : core::json_line(report) + "\n";
    if (!json.empty() && json != "-") tools::write_file(json, document);
    print(json == "-" ? document : node_report_text(report, invocation.screen.style()));
  }
  finalize();
  return code;
}

}  // namespace col::colbench
