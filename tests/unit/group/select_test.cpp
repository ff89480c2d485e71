// Algorithms as text, selection tables, overrides, and the choice.
#include <algorithm>
#include <cstddef>
#include <fstream>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <col/plan.hpp>
#include <col/select.hpp>

#include "support/catch.hpp"
#include "support/temp_dir.hpp"

namespace col {
namespace {

using nlohmann::json;

// The message of what `call` throws, which has to be an invalid_argument; empty when it throws nothing.
std::string refusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::invalid_argument);
    return error.message();
  }
  return {};
}

void check_says(const std::string& message, const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    INFO("message: " << message);
    CHECK(message.find(word) != std::string::npos);
  }
}

std::string spec_refusal(std::string_view text) {
  return refusal([&] { (void)AlgorithmSpec::parse(text); });
}

std::string table_refusal(const std::string& text) {
  return refusal([&] { (void)SelectionTable::parse(text, "test.json"); });
}

// A table of one rule, of which one thing was changed.
std::string rule_refusal(const std::function<void(json& rule)>& change) {
  json table = json::parse(R"({"version": 1, "rules": [{"collective": "allreduce", "ranks": [2, 8],
    "bytes": ["0", "64K"], "backend": "shm", "power_of_two": true, "algorithm": "ring"}]})");
  REQUIRE(table_refusal(table.dump()).empty());
  change(table["rules"][0]);
  return table_refusal(table.dump());
}

SelectionTable table_of(const std::string& rules) {
  return SelectionTable::parse(fmt::format(R"({{"version": 1, "rules": [{}]}})", rules), "test.json");
}

std::optional<std::string> nothing_against(const AlgorithmSpec&) {
  return std::nullopt;
}

// A request as a call of that query makes it; v-forms have equal blocks.
PlanRequest request_of(const SelectionQuery& query, std::vector<std::size_t>& counts,
                       std::vector<std::size_t>& displacements) {
  const auto size = static_cast<std::size_t>(query.ranks);
  const std::size_t count = std::max<std::size_t>(1, query.bytes / 4 / size);
  PlanRequest request{.collective = query.collective, .size = query.ranks, .count = count};
  counts.assign(size, count);
  displacements.resize(size);
  for (std::size_t i = 0; i < size; ++i) displacements[i] = i * count;
  switch (query.collective) {
    case Collective::allgatherv:
    case Collective::gatherv:
      request.out_counts = counts;
      request.out_displacements = displacements;
      break;
    case Collective::reduce_scatterv:
    case Collective::scatterv:
      request.in_counts = counts;
      request.in_displacements = displacements;
      break;
    case Collective::alltoallv:
      request.in_counts = request.out_counts = counts;
      request.in_displacements = request.out_displacements = displacements;
      break;
    default:
      break;
  }
  return request;
}

}  // namespace

TEST_CASE("algorithm spec: text becomes name, parameters and file, and text again", "[select]") {
  CHECK(AlgorithmSpec::parse("ring") == AlgorithmSpec{.name = "ring"});
  CHECK(AlgorithmSpec::parse("knomial:radix=8") == AlgorithmSpec{.name = "knomial", .radix = 8});
  CHECK(AlgorithmSpec::parse("ring_pipelined:segment=64K") ==
        AlgorithmSpec{.name = "ring_pipelined", .segment_bytes = 65536});
  CHECK(AlgorithmSpec::parse("x:segment=3m:radix=2") ==
        AlgorithmSpec{.name = "x", .radix = 2, .segment_bytes = 3 << 20});
  CHECK(AlgorithmSpec::parse("file:a:b=c.json") == AlgorithmSpec{.name = "file", .file = "a:b=c.json"});
  for (const std::string_view text : {"ring", "knomial:radix=8", "a:radix=2:segment=64K", "a:segment=1000",
                                      "a:segment=3G", "file:my.json", "file:/a/b:c.json"})
    CHECK(AlgorithmSpec::parse(text).text() == text);
}

TEST_CASE("algorithm spec: what is no algorithm is refused with the form", "[select]") {
  check_says(spec_refusal(""), {"is empty", "NAME:radix=8"});
  check_says(spec_refusal(":ring"), {"algorithm ':ring'", "'' is no name"});
  check_says(spec_refusal("8ring"), {"'8ring' is no name", "a letter first"});
  check_says(spec_refusal("ring one"), {"'ring one' is no name"});
  check_says(spec_refusal("ring:"), {"ends with a colon"});
  check_says(spec_refusal("ring:radix=2:"), {"ends with a colon"});
  check_says(spec_refusal("ring:radix"), {"'radix' is no parameter with a value"});
  check_says(spec_refusal("ring:radxi=2"), {"unknown parameter 'radxi'", "did you mean 'radix'?"});
  check_says(spec_refusal("ring:radix=1"), {"radix should be a whole number from 2 to 65536", "'1'"});
  check_says(spec_refusal("ring:radix=8x"), {"radix should be", "'8x'"});
  check_says(spec_refusal("ring:radix=99999999999"), {"radix should be"});
  check_says(spec_refusal("ring:radix=2:radix=2"), {"radix comes twice"});
  check_says(spec_refusal("ring:segment=64KB"), {"segment should be a size such as 64K", "'64KB'"});
  check_says(spec_refusal("ring:segment=0"), {"segment should be a size"});
  check_says(spec_refusal("ring:segment=-1"), {"segment should be a size"});
  check_says(spec_refusal("ring:segment=99999999T"), {"segment should be a size"});
  check_says(spec_refusal("ring:segment=1:segment=2"), {"segment comes twice"});
  check_says(spec_refusal("file:"), {"needs the path"});
  check_says(spec_refusal("file"), {"needs the path"});
  check_says(spec_refusal(std::string_view("file:a\0b", 8)), {"zero byte"});
}

TEST_CASE("selection rule: every condition counts, bounds are inclusive", "[select]") {
  const SelectionRule rule{.collective = Collective::allreduce,
                           .min_ranks = 3,
                           .max_ranks = 8,
                           .min_bytes = 10,
                           .max_bytes = 20,
                           .backend = "shm",
                           .power_of_two = true,
                           .algorithm = {.name = "ring"}};
  const SelectionQuery fits{.collective = Collective::allreduce, .ranks = 4, .bytes = 10, .backend = "shm"};
  CHECK(rule.matches(fits));
  const auto changed = [&](const std::function<void(SelectionQuery&)>& change) {
    SelectionQuery query = fits;
    change(query);
    return rule.matches(query);
  };
  CHECK(changed([](SelectionQuery& q) { q.bytes = 20; }));
  CHECK(changed([](SelectionQuery& q) { q.ranks = 8; }));
  CHECK_FALSE(changed([](SelectionQuery& q) { q.bytes = 9; }));
  CHECK_FALSE(changed([](SelectionQuery& q) { q.bytes = 21; }));
  CHECK_FALSE(changed([](SelectionQuery& q) { q.ranks = 2; }));
  CHECK_FALSE(changed([](SelectionQuery& q) { q.ranks = 16; }));
  CHECK_FALSE(changed([](SelectionQuery& q) { q.ranks = 6; }));  // no power of two
  CHECK_FALSE(changed([](SelectionQuery& q) { q.backend = "gloo"; }));
  CHECK_FALSE(changed([](SelectionQuery& q) { q.collective = Collective::reduce; }));
  SelectionRule odd = rule;
  odd.power_of_two = false;
  CHECK_FALSE(odd.matches(fits));
  CHECK(SelectionRule{.collective = Collective::allreduce}.matches(fits));
  const SelectionRule on_nodes{.collective = Collective::allreduce,
                               .min_nodes = 2,
                               .max_nodes = 4,
                               .min_ranks_per_node = 2,
                               .max_ranks_per_node = 8};
  const auto matches = [&](int nodes, int ranks_per_node) {
    return on_nodes.matches(
        {.collective = Collective::allreduce, .ranks = 8, .nodes = nodes, .ranks_per_node = ranks_per_node});
  };
  CHECK(matches(2, 2));
  CHECK(matches(4, 8));
  CHECK_FALSE(matches(1, 8));
  CHECK_FALSE(matches(5, 2));
  CHECK_FALSE(matches(2, 1));
  CHECK_FALSE(matches(2, 9));
}

TEST_CASE("selection rule: text names the conditions that it has", "[select]") {
  CHECK(SelectionRule{.collective = Collective::scan, .algorithm = {.name = "linear"}}.text() == "scan: linear");
  CHECK(SelectionRule{.collective = Collective::allreduce,
                      .min_ranks = 2,
                      .max_ranks = 8,
                      .max_bytes = 65536,
                      .backend = "shm",
                      .algorithm = {.name = "ring"}}
            .text() == "allreduce, 2 to 8 ranks, up to 64K, backend shm: ring");
  CHECK(SelectionRule{.collective = Collective::reduce,
                      .min_ranks = 9,
                      .min_bytes = 1000,
                      .power_of_two = false,
                      .algorithm = {.name = "mst"}}
            .text() == "reduce, from 9 ranks, from 1000, not a power of two: mst");
  CHECK(SelectionRule{.min_ranks = 4, .max_ranks = 4, .power_of_two = true, .algorithm = {.name = "a"}}.text() ==
        "barrier, 4 ranks, a power of two: a");
  CHECK(
      SelectionRule{.min_ranks = 4, .min_nodes = 2, .max_nodes = 3, .min_ranks_per_node = 2, .algorithm = {.name = "a"}}
          .text() == "barrier, from 4 ranks, 2 to 3 nodes, from 2 ranks a node: a");
}

TEST_CASE("selection table: rules are read as they are written", "[select]") {
  const SelectionTable table = SelectionTable::parse(
      R"({"version": 1, "evidence": {"machine": "a machine", "date": "a day", "command": "a command"}, "rules": [
      {"collective": "allreduce", "ranks": [2, 8], "bytes": ["0", "64K"], "backend": "shm", "power_of_two": true,
       "algorithm": "ring"},
      {"collective": "reduce", "ranks": [null, 4], "bytes": [1000, null], "algorithm": "chain:segment=1M"}]})",
      "test.json");
  CHECK(table.source() == "test.json");
  CHECK(table.evidence() == "machine: a machine; date: a day; command: a command");
  REQUIRE(table.rules().size() == 2);
  CHECK(table.rules()[0].text() == "allreduce, 2 to 8 ranks, up to 64K, backend shm, a power of two: ring");
  CHECK(table.rules()[1].text() == "reduce, up to 4 ranks, from 1000: chain:segment=1M");
  CHECK(table_of(R"({"collective": "scan", "algorithm": "x"})").evidence() == "not recorded");
}

TEST_CASE("selection table: its text has the rules that were written", "[select]") {
  const auto rules = SelectionTable::built_in().rules();
  const SelectionTable again =
      SelectionTable::parse(selection_to_json(rules, {"a \"machine\"", "a day", "a: b, c"}), "it");
  CHECK(again.evidence() == "machine: a \"machine\"; date: a day; command: a: b, c");
  CHECK(std::vector(again.rules().begin(), again.rules().end()) == std::vector(rules.begin(), rules.end()));
  const SelectionRule rule{.collective = Collective::scan,
                           .min_ranks = 3,
                           .min_bytes = 1000,
                           .power_of_two = false,
                           .algorithm = {.name = "linear"}};
  check_says(selection_to_json({{rule}}, {}),
             {R"({"collective": "scan", "ranks": [3, null], "power_of_two": false, "bytes": ["1000", null], )"
              R"("algorithm": "linear"})"});
  const SelectionRule on_nodes{
      .collective = Collective::scan, .min_nodes = 2, .max_ranks_per_node = 8, .algorithm = {.name = "linear"}};
  const std::string text = selection_to_json({{on_nodes}}, {});
  check_says(text, {R"({"collective": "scan", "nodes": [2, null], "ranks_per_node": [1, 8], "algorithm": "linear"})"});
  CHECK(SelectionTable::parse(text, "it").rules().front() == on_nodes);
}

TEST_CASE("selection table: what is wrong is named with rule and member", "[select]") {
  check_says(table_refusal("{"), {"selection table (test.json)", "not valid JSON at line 1"});
  check_says(table_refusal("[]"), {"should be an object"});
  check_says(table_refusal(R"({"rules": []})"), {"lacks the member 'version'"});
  check_says(table_refusal(R"({"version": 2, "rules": []})"), {"/version", "is 2", "reads 1"});
  check_says(table_refusal(R"({"version": 1})"), {"lacks the member 'rules'"});
  check_says(table_refusal(R"({"version": 1, "rules": []})"), {"/rules", "a rule at least"});
  check_says(table_refusal(R"({"version": 1, "rules": {}})"), {"/rules", "should be a list of rules"});
  check_says(table_refusal(R"({"version": 1, "rule": []})"), {"unknown member 'rule'", "did you mean 'rules'?"});
  check_says(table_refusal(R"({"version": 1, "rules": [], "evidence": {"machine": ""}})"),
             {"/evidence", "lacks the member 'date'"});
  check_says(rule_refusal([](json& r) { r["collective"] = "allredcue"; }),
             {"/rules/0/collective", "'allredcue'", "did you mean 'allreduce'?"});
  check_says(rule_refusal([](json& r) { r["collective"] = "send"; }), {"unknown collective 'send'"});
  check_says(rule_refusal([](json& r) { r["collective"] = "xyzzyxyzzy"; }), {"use one of allreduce, reduce"});
  check_says(rule_refusal([](json& r) { r["collective"] = 3; }), {"/rules/0/collective", "should be a text"});
  check_says(rule_refusal([](json& r) { r["byte"] = 3; }), {"/rules/0", "'byte'", "did you mean 'bytes'?"});
  check_says(rule_refusal([](json& r) {
               r.erase("algorithm");
               r["algorithim"] = "ring";
             }),
             {"/rules/0", "'algorithim'", "did you mean 'algorithm'?"});
  check_says(rule_refusal([](json& r) { r.erase("algorithm"); }), {"/rules/0", "lacks the member 'algorithm'"});
  check_says(rule_refusal([](json& r) { r["algorithm"] = "ring:radix=x"; }), {"/rules/0/algorithm", "radix should be"});
  check_says(rule_refusal([](json& r) { r["ranks"] = 4; }), {"/rules/0/ranks", "the least and the most"});
  check_says(rule_refusal([](json& r) { r["ranks"] = {4}; }), {"/rules/0/ranks", "list of two"});
  check_says(rule_refusal([](json& r) { r["ranks"] = {4, 2}; }), {"/rules/0/ranks", "4, is more than its most, 2"});
  check_says(rule_refusal([](json& r) { r["ranks"] = {0, 2}; }), {"/rules/0/ranks/0", "from 1 to"});
  check_says(rule_refusal([](json& r) { r["ranks"] = {2, 3000000000u}; }), {"/rules/0/ranks/1", "2147483647"});
  check_says(rule_refusal([](json& r) {
               r["bytes"] = {0, "64KB"};
             }),
             {"/rules/0/bytes/1", "such as \"64K\"", "'64KB'"});
  check_says(rule_refusal([](json& r) { r["bytes"] = {0.5, 2}; }), {"/rules/0/bytes/0", "whole number", "0.5"});
  check_says(rule_refusal([](json& r) { r["backend"] = ""; }), {"/rules/0/backend", "is empty"});
  check_says(rule_refusal([](json& r) { r["power_of_two"] = "yes"; }), {"/rules/0/power_of_two", "true or false"});
}

TEST_CASE("selection table: loading names the file", "[select]") {
  const test::TempDir dir;
  const std::string path = dir / "table.json";
  std::ofstream(path) << R"({"version": 1, "rules": [{"collective": "scan", "algorithm": "linear"}]})";
  CHECK(SelectionTable::load(path).source() == path);
  std::ofstream(path) << R"({"version": 1, "rules": [{"collective": "scna", "algorithm": "linear"}]})";
  check_says(refusal([&] { (void)SelectionTable::load(path); }), {path, "did you mean 'scan'?"});
  try {
    (void)SelectionTable::load(dir / "none");
    FAIL("there is no such file");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::io);
    check_says(error.message(), {"cannot read selection table", "none", "No such file"});
  }
}

TEST_CASE("overrides: one algorithm per collective", "[select]") {
  const auto overrides = parse_overrides("allreduce:ring,broadcast:knomial:radix=8,alltoall:file:my.json");
  REQUIRE(overrides.size() == 3);
  CHECK(overrides[0].collective == Collective::allreduce);
  CHECK(overrides[0].algorithm.text() == "ring");
  CHECK(overrides[1].collective == Collective::broadcast);
  CHECK(overrides[1].algorithm.radix == 8);
  CHECK(overrides[2].algorithm.file == "my.json");
  CHECK(parse_overrides("").empty());
}

TEST_CASE("overrides: what is wrong is named with its entry", "[select]") {
  const auto why = [](std::string_view text) { return refusal([&] { (void)parse_overrides(text); }); };
  check_says(why("ring"), {"COL_ALGORITHM: entry 'ring'", "has no colon", "COLLECTIVE:ALGORITHM"});
  check_says(why("allreduce:ring,,scan:linear"), {"entry ''", "has no colon"});
  check_says(why("scan:linear,allredcue:ring"), {"entry 'allredcue:ring'", "did you mean 'allreduce'?"});
  check_says(why("allreduce:ring,allreduce:mst"), {"entry 'allreduce:mst'", "allreduce has one already"});
  check_says(why("allreduce:"), {"is empty", "NAME:radix=8"});
  check_says(why("allreduce:ring:radix=1"), {"entry 'allreduce:ring:radix=1'", "radix should be"});
}

TEST_CASE("choose: the first rule that matches and serves, and why", "[select]") {
  const SelectionTable table = table_of(R"(
    {"collective": "reduce", "algorithm": "mst"},
    {"collective": "allreduce", "bytes": [0, "1K"], "algorithm": "bde"},
    {"collective": "allreduce", "algorithm": "neighbor"},
    {"collective": "allreduce", "algorithm": "ring"})");
  const SelectionQuery small{.collective = Collective::allreduce, .ranks = 3, .bytes = 8};
  const SelectionQuery large{.collective = Collective::allreduce, .ranks = 3, .bytes = 1 << 20};

  const auto first = choose(table, small, nothing_against);
  REQUIRE(first);
  CHECK(first->algorithm.name == "bde");
  CHECK(first->reason == "rule 2 of test.json: allreduce, up to 1K: bde");

  const auto no_neighbor = [](const AlgorithmSpec& spec) -> std::optional<std::string> {
    if (spec.name == "neighbor") return "needs an even number of ranks";
    return std::nullopt;
  };
  const auto second = choose(table, large, no_neighbor);
  REQUIRE(second);
  CHECK(second->algorithm.name == "ring");
  CHECK(second->reason == "rule 4 of test.json: allreduce: ring (rule 3: neighbor: needs an even number of ranks)");
}

TEST_CASE("choose: when nothing serves, all that was refused is said", "[select]") {
  const SelectionTable table = table_of(R"({"collective": "allreduce", "bytes": [0, "1K"], "algorithm": "bde"},
                                           {"collective": "allreduce", "bytes": [0, "2K"], "algorithm": "rign"})");
  const auto none = [](const AlgorithmSpec&) { return std::optional<std::string>("no such algorithm"); };
  std::string refused;
  const SelectionQuery query{.collective = Collective::allreduce, .ranks = 3, .bytes = 512, .backend = "shm"};
  CHECK_FALSE(choose(table, query, none, &refused));
  CHECK(refused ==
        "no rule of test.json serves allreduce of 512 on 3 ranks, backend shm: rule 1: bde: no such algorithm; rule 2: "
        "rign: no such algorithm");
  CHECK_FALSE(choose(table, {.collective = Collective::scan, .ranks = 2}, nothing_against, &refused));
  CHECK(refused == "no rule of test.json is for scan of 0 on 2 ranks");
  CHECK_FALSE(choose(table, query, none));
}

TEST_CASE("choose: groups over hosts go by the rules for gloo, until the table has rules for them", "[select]") {
  const SelectionQuery query{.collective = Collective::allreduce, .ranks = 4, .bytes = 512, .backend = "hosts"};
  const std::string others = R"({"collective": "allreduce", "backend": "shm", "algorithm": "mst"},
                                {"collective": "scan", "backend": "hosts", "algorithm": "linear"},
                                {"collective": "allreduce", "backend": "gloo", "algorithm": "ring"})";
  const auto lent = choose(table_of(others), query, nothing_against);
  REQUIRE(lent);
  CHECK(lent->algorithm.name == "ring");
  const auto own = choose(table_of(others + R"(, {"collective": "allreduce", "backend": "hosts", "algorithm": "bde"})"),
                          query, nothing_against);
  REQUIRE(own);
  CHECK(own->algorithm.name == "bde");
}

TEST_CASE("choose: groups over hosts and UCX go by the rules for Gloo in its place, until the table has their own",
          "[select]") {
  const SelectionQuery query{.collective = Collective::allreduce, .ranks = 4, .bytes = 512, .backend = "hosts_ucx"};
  std::string rules = R"({"collective": "allreduce", "backend": "shm", "algorithm": "mst"},
                         {"collective": "allreduce", "backend": "gloo", "algorithm": "ring"})";
  const auto chosen = [&] { return choose(table_of(rules), query, nothing_against)->algorithm.name; };
  CHECK(chosen() == "ring");
  rules += R"(, {"collective": "allreduce", "backend": "hosts", "algorithm": "bde"})";
  CHECK(chosen() == "bde");
  rules += R"(, {"collective": "allreduce", "backend": "hosts_ucx", "algorithm": "rabenseifner"})";
  CHECK(chosen() == "rabenseifner");
}

TEST_CASE("built-in table: says where it comes from", "[select]") {
  const SelectionTable& table = SelectionTable::built_in();
  CHECK(table.source() == "built in");
  check_says(table.evidence(), {"machine: ", "date: 20", "command: "});
}

TEST_CASE("built-in table: it is that of configs/selection.json", "[select]") {
  const SelectionTable& table = SelectionTable::built_in();
  const SelectionTable file = SelectionTable::load(SELECTION_FILE);
  CHECK(table.evidence() == file.evidence());
  REQUIRE(table.rules().size() == file.rules().size());
  for (std::size_t i = 0; i < file.rules().size(); ++i) {
    INFO("rule " << i + 1 << ": " << file.rules()[i].text());
    CHECK(table.rules()[i] == file.rules()[i]);
  }
}

TEST_CASE("built-in table: every algorithm in it is one, and takes its parameters", "[select]") {
  std::set<std::string> rules;
  for (const SelectionRule& rule : SelectionTable::built_in().rules()) {
    INFO(rule.text());
    CHECK(rules.insert(rule.text()).second);  // the second of two equal rules never serves
    if (rule.backend == "shm" && rule.algorithm.name == "shared") continue;  // the backend's own
    const Algorithm* algorithm = find_algorithm(rule.collective, rule.algorithm.name);
    REQUIRE(algorithm != nullptr);
    if (rule.algorithm.radix != 0) CHECK(algorithm->parameters.find("radix") != std::string_view::npos);
    if (rule.algorithm.segment_bytes != 0) CHECK(algorithm->parameters.find("segment") != std::string_view::npos);
  }
}

// Of a collective without a rule, the dispatcher takes the first algorithm that serves.
TEST_CASE("built-in table: serves every number of ranks, size, backend and order of a collective", "[select]") {
  std::set<Collective> with_rules;
  for (const SelectionRule& rule : SelectionTable::built_in().rules()) with_rules.insert(rule.collective);
  CHECK(with_rules.size() >= 16);
  std::size_t asked = 0;
  for (const Collective collective : with_rules) {
    std::set<FoldOrder> orders;  // that some algorithm keeps
    for (const Algorithm& algorithm : algorithms()) {
      for (int order = 0; order <= static_cast<int>(algorithm.order); ++order)
        if (algorithm.collective == collective) orders.insert(static_cast<FoldOrder>(order));
    }
    REQUIRE(orders.size() == 3);
    for (int ranks = 1; ranks <= 64; ++ranks) {
      for (std::size_t bytes = 0; bytes <= (std::size_t{1} << 30); bytes = bytes == 0 ? 1 : 8 * bytes) {
        for (const std::string_view backend : {"shm", "hosts", "hosts_ucx", "gloo", "nccl", "mine"}) {
          for (const FoldOrder order : orders) {
            const SelectionQuery query{.collective = collective, .ranks = ranks, .bytes = bytes, .backend = backend};
            std::vector<std::size_t> counts, displacements;
            const PlanRequest request = request_of(query, counts, displacements);
            std::string refused;
            const auto choice = choose(
                SelectionTable::built_in(), query,
                [&](const AlgorithmSpec& spec) -> std::optional<std::string> {
                  const Algorithm* algorithm = find_algorithm(collective, spec.name);
                  if (algorithm == nullptr) return "no such algorithm";
                  if (algorithm->order < order) return "does not keep the order";
                  return algorithm->refuse(request);
                },
                &refused);
            if (!choice)
              FAIL(fmt::format("{}, {} ranks, {} bytes, {}, order {}: {}", to_string(collective), ranks, bytes, backend,
                               to_string(order), refused));
            ++asked;
          }
        }
      }
    }
  }
  CHECK(asked > 100000);
}

TEST_CASE("built-in table: a later rule serves when an algorithm refuses", "[select]") {
  // neighbor pairs ranks off, and so refuses an odd number of them.
  const SelectionTable table = table_of(R"({"collective": "allgather", "algorithm": "neighbor"},
                                           {"collective": "allgather", "algorithm": "ring"})");
  const SelectionQuery query{.collective = Collective::allgather, .ranks = 7, .bytes = 7000};
  std::vector<std::size_t> counts, displacements;
  const PlanRequest request = request_of(query, counts, displacements);
  const auto choice = choose(table, query, [&](const AlgorithmSpec& spec) {
    return find_algorithm(Collective::allgather, spec.name)->refuse(request);
  });
  REQUIRE(choice);
  CHECK(choice->algorithm.name == "ring");
  check_says(choice->reason, {"rule 2 of test.json", "(rule 1: neighbor: ", "even"});
}

TEST_CASE("nearest name: a slip is found, another word is not", "[select]") {
  const std::vector<std::string_view> names = {"ring", "ring_pipelined", "rabenseifner", "mst"};
  CHECK(nearest_name("rign", names) == "ring");
  CHECK(nearest_name("rabenseifer", names) == "rabenseifner");
  CHECK(nearest_name("Ring_pipelined", names) == "ring_pipelined");
  CHECK(nearest_name("ring", names) == "ring");
  CHECK(nearest_name("mts", names) == "mst");
  CHECK(nearest_name("bruck", names).empty());
  CHECK(nearest_name("", names).empty());
  CHECK(nearest_name(std::string(1000, 'r'), names).empty());
  CHECK(nearest_name("ring", {}).empty());
}

}  // namespace col
