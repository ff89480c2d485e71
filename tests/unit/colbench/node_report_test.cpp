// What colbench nodes finds odd, and how it says so.
#include <string>
#include <string_view>
#include <vector>

#include "colbench/nodes/node_report.hpp"
#include "support/catch.hpp"

namespace col::colbench {
namespace {

using Catch::Matchers::Contains;

NodeFacts node(const std::string& host) {
  return {.host = host,
          .version = "0.1.0",
          .processors = 8,
          .memory_free = 64e9,
          .shm_free = 32e9,
          .open_files = 1024,
          .locked_memory = kUnlimited,
          .clock_ahead = 1e-5,
          .clock_uncertain = 2e-5};
}

std::vector<NodeFacts> nodes(int count) {
  std::vector<NodeFacts> all;
  for (int i = 1; i <= count; ++i) all.push_back(node("n" + std::to_string(i)));
  return all;
}

// All pairs, of which those with `slow` take ten times as long; -1: none.
std::vector<NodePair> pairs(int count, int slow) {
  std::vector<NodePair> all;
  for (int a = 0; a < count; ++a) {
    for (int b = a + 1; b < count; ++b) {
      const double factor = a == slow || b == slow ? 10 : 1;
      all.push_back({a, b, 20e-6, 1e9 / factor});
    }
  }
  return all;
}

TEST_CASE("nodes: equal ones are fit", "[colbench][nodes]") {
  for (const int count : {1, 2, 3, 5}) CHECK(oddities_of(nodes(count), pairs(count, -1)).empty());
  const std::string text = node_report_text({nodes(3), pairs(3, -1), {}}, {});
  CHECK_THAT(text, Contains("fit: nothing stands out\n") && !Contains("*"));
  CHECK_THAT(node_report_text({nodes(2), pairs(2, -1), {}}, {}), Contains("of two nodes, none can be the slower one"));
}

TEST_CASE("nodes: each kind of oddity is found on the node that has it", "[colbench][nodes]") {
  struct Case {
    std::string_view what;
    void (*spoil)(NodeFacts&);
  };
  const auto [what, spoil] = GENERATE(Case{"col", [](NodeFacts& node) { node.version = "0.0.9"; }},
                                      Case{"processors", [](NodeFacts& node) { node.processors = 3; }},
                                      Case{"free memory", [](NodeFacts& node) { node.memory_free = 31e9; }},
                                      Case{"/dev/shm", [](NodeFacts& node) { node.shm_free = 15e9; }},
                                      Case{"open files", [](NodeFacts& node) { node.open_files = 256; }},
                                      Case{"locked memory", [](NodeFacts& node) { node.locked_memory = 65536; }},
                                      Case{"clock", [](NodeFacts& node) { node.clock_ahead = -1.1; }});
  INFO(what);
  std::vector<NodeFacts> all = nodes(3);
  spoil(all[1]);
  const auto odd = oddities_of(all, pairs(3, -1));
  REQUIRE(odd.size() == 1);
  CHECK(odd[0].node == 1);
  CHECK(odd[0].what == what);
  CHECK_THAT(odd[0].sentence, Contains("n2: " + std::string(what) + ": "));
  const std::string text = node_report_text({all, pairs(3, -1), odd}, {});
  CHECK_THAT(text, Contains(" *") && Contains(odd[0].sentence) && Contains("unfit:") && Contains("without n2\n"));
  // As JSON, and back.
  const NodeReport report{all, pairs(3, -1), odd};
  const auto same = core::parsed_json<NodeReport>(core::json_line(report), "a report");
  CHECK(core::json_line(same) == core::json_line(report));
}

TEST_CASE("nodes: what all have too little of is odd everywhere", "[colbench][nodes]") {
  std::vector<NodeFacts> all = nodes(2);
  for (NodeFacts& node : all) node.open_files = 64;
  const auto odd = oddities_of(all, {});
  REQUIRE(odd.size() == 2);
  CHECK_THAT(odd[0].sentence, Contains("n1: open files: 64, and a job needs 256; raise ulimit -n there"));
}

TEST_CASE("nodes: a slow link is its node's, and a slow way that of two", "[colbench][nodes]") {
  const auto by_node = oddities_of(nodes(4), pairs(4, 2));
  REQUIRE(by_node.size() == 1);
  CHECK((by_node[0].node == 2 && by_node[0].other == 2 && by_node[0].what == "bandwidth"));
  CHECK_THAT(by_node[0].sentence, Contains("n3: bandwidth with everybody: 100 MB/s, and others have 1 GB/s"));
  std::vector<NodePair> one_way = pairs(4, -1);
  one_way[4].latency *= 3;  // nodes 1 and 3
  const auto by_pair = oddities_of(nodes(4), one_way);
  REQUIRE(by_pair.size() == 1);
  CHECK((by_pair[0].node == 1 && by_pair[0].other == 3 && by_pair[0].what == "latency"));
  // Of two nodes nobody is the slow one; of what is a little slower, nothing is said.
  CHECK(oddities_of(nodes(2), pairs(2, 1)).empty());
  std::vector<NodePair> little = pairs(4, -1);
  for (NodePair& pair : little) pair.bandwidth /= pair.first == 0 ? 1.8 : 1;
  CHECK(oddities_of(nodes(4), little).empty());
}

}  // namespace
}  // namespace col::colbench
