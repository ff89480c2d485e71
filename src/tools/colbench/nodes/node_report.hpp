// What was found out about the nodes of a job to come, and what is odd in it. All functions are pure.
#pragma once

#include <string>
#include <vector>

#include "common/style.hpp"
#include "json/json_fields.hpp"

namespace col::colbench {

struct NodeFacts {
  std::string host;
  std::string version;  // of libcol
  double processors = 0;
  double memory_free = 0, shm_free = 0;         // bytes; of /dev/shm
  double open_files = 0, locked_memory = 0;     // the soft limits; kUnlimited
  double clock_ahead = 0, clock_uncertain = 0;  // seconds, of node 0's clock, and by how much that may be wrong
};
inline constexpr double kUnlimited = 1e18;

template <class Visit>
void fields(NodeFacts& node, Visit& visit) {
  auto& [host, version, processors, memory_free, shm_free, open_files, locked_memory, clock_ahead, clock_uncertain] =
      node;
  visit("host", host);
  visit("version", version);
  visit("processors", processors);
  visit("memory_free", memory_free);
  visit("shm_free", shm_free);
  visit("open_files", open_files);
  visit("locked_memory", locked_memory);
  visit("clock_ahead", clock_ahead);
  visit("clock_uncertain", clock_uncertain);
}

// Two nodes, and half a round trip between them.
struct NodePair {
  int first = 0, second = 1;
  double latency = 0;    // seconds, of 8 bytes
  double bandwidth = 0;  // bytes per second
};

template <class Visit>
void fields(NodePair& pair, Visit& visit) {
  auto& [first, second, latency, bandwidth] = pair;
  visit("first", first);
  visit("second", second);
  visit("latency", latency);
  visit("bandwidth", bandwidth);
}

// What is odd. Both nodes are equal where it is not about a pair.
struct Oddity {
  int node = 0, other = 0;
  std::string what;      // the heading of its column
  std::string sentence;  // "n3: open files: 128, and the others have 1,048,576; raise ulimit -n there"
};

template <class Visit>
void fields(Oddity& oddity, Visit& visit) {
  auto& [node, other, what, sentence] = oddity;
  visit("node", node);
  visit("other", other);
  visit("what", what);
  visit("sentence", sentence);
}

struct NodeReport {
  std::vector<NodeFacts> nodes = {};  // by rank
  std::vector<NodePair> pairs = {};
  std::vector<Oddity> odd = {};
};

template <class Visit>
void fields(NodeReport& report, Visit& visit) {
  auto& [nodes, pairs, odd] = report;
  visit("nodes", nodes);
  visit("pairs", pairs);
  visit("odd", odd);
}

// A node is odd if it has less than half of what most have, or less than any job needs; if it is twice as slow as
// others, or with one of them; if its clock is a second off; if its libcol is another one.
std::vector<Oddity> oddities_of(const std::vector<NodeFacts>& nodes, const std::vector<NodePair>& pairs);

// The table, with a star at what is odd, a line for each oddity, and one that says what to do.
std::string node_report_text(const NodeReport& report, tools::Style style);

}  // namespace col::colbench
