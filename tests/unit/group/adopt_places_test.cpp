// Where ranks that never come were to run.
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "core/env.hpp"
#include "group/adopt/places.hpp"
#include "support/catch.hpp"

using namespace col::group::adopt;

namespace {

using Hosts = std::vector<std::string>;
using Values = std::map<std::string, std::string, std::less<>>;

Hosts hosts_by(const Values& values, const std::string& own_name = "here") {
  const Lookup lookup = [&](std::string_view name) -> std::optional<std::string> {
    bool listed = false;  // as in env::get
    for (const auto& variable : col::core::env::table()) listed |= variable.name == name;
    for (const auto& variable : col::core::env::launcher_table()) listed |= variable.name == name;
    if (!listed) throw std::runtime_error(std::string(name) + " is in no table");
    const auto found = values.find(name);
    return found == values.end() ? std::nullopt : std::optional(found->second);
  };
  const auto own = find_launched_rank(lookup);
  REQUIRE(own.has_value());
  return hosts_of_ranks(*own, lookup, [&] { return own_name; });
}

// Rank 2 of 7, on the second of three nodes.
Values slurm() {
  return {{"SLURM_PROCID", "2"},
          {"SLURM_STEP_ID", "0"},
          {"SLURM_STEP_NUM_TASKS", "7"},
          {"SLURM_JOB_ID", "77"},
          {"SLURM_LOCALID", "0"},
          {"SLURM_NODEID", "1"},
          {"SLURM_STEP_NUM_NODES", "3"},
          {"SLURM_STEP_NODELIST", "n[09-10],m3"},
          {"SLURM_STEP_TASKS_PER_NODE", "2(x2),3"},
          {"SLURMD_NODENAME", "n10"},
          {"SLURM_GTIDS", "2,3"}};
}

Values slurm_with(Values values, const std::string& name, const std::string& value) {
  values[name] = value;
  return values;
}

}  // namespace

TEST_CASE("places: the hosts of a list of Slurm's, in its order", "[group]") {
  CHECK(hosts_of_list("n1", 9) == Hosts{"n1"});
  CHECK(hosts_of_list("n[01-03,7],m", 9) == Hosts{"n01", "n02", "n03", "n7", "m"});
  CHECK(hosts_of_list("r[1-2]n[8-10]-ib", 9) ==
        Hosts{"r1n8-ib", "r1n9-ib", "r1n10-ib", "r2n8-ib", "r2n9-ib", "r2n10-ib"});
  CHECK(hosts_of_list("n[1-9]", 9).size() == 9);
  for (const char* const text :
       {"", "n[1-10]", "n[1-999999999999]", "n[3-1]", "n[1-", "n[a]", "n[]", "n[1,,2]", "a,,b"}) {
    INFO(text);
    CHECK(hosts_of_list(text, 9).empty());
  }
}

TEST_CASE("places: Slurm says the host of each rank where the ranks go host after host", "[group]") {
  const Hosts expected{"n09", "n09", "n10", "n10", "m3", "m3", "m3"};
  CHECK(hosts_by(slurm()) == expected);
  CHECK(hosts_by(slurm_with(slurm(), "SLURM_DISTRIBUTION", "block:cyclic")) == expected);
  // In turn, by a list of the user, in another order; or the variables contradict each other.
  CHECK(hosts_by(slurm_with(slurm(), "SLURM_GTIDS", "2,5")).empty());
  CHECK(hosts_by(slurm_with(slurm(), "SLURM_DISTRIBUTION", "arbitrary")).empty());
  CHECK(hosts_by(slurm_with(slurm(), "SLURM_HET_SIZE", "2")).empty());
  CHECK(hosts_by(slurm_with(slurm(), "SLURMD_NODENAME", "n11")).empty());
  CHECK(hosts_by(slurm_with(slurm(), "SLURM_STEP_TASKS_PER_NODE", "2(x3)")).empty());
  CHECK(hosts_by(slurm_with(slurm(), "SLURM_STEP_NODELIST", "n[09-10]")).empty());
}

TEST_CASE("places: one rank alone on its host shows how ranks go only if all are alone", "[group]") {
  Values values = slurm();
  values["SLURM_STEP_NUM_TASKS"] = "4";
  values["SLURM_STEP_TASKS_PER_NODE"] = "1,2,1";
  values["SLURM_PROCID"] = values["SLURM_GTIDS"] = values["SLURM_NODEID"] = "0";
  values["SLURMD_NODENAME"] = "n09";
  CHECK(hosts_by(values).empty());
  CHECK(hosts_by(slurm_with(values, "SLURM_DISTRIBUTION", "block")) == Hosts{"n09", "n10", "n10", "m3"});
  values["SLURM_STEP_NUM_TASKS"] = "3";
  values["SLURM_STEP_TASKS_PER_NODE"] = "1(x3)";
  CHECK(hosts_by(values) == Hosts{"n09", "n10", "m3"});
}

TEST_CASE("places: the pods of an Indexed Job differ by their number; others do not tell", "[group]") {
  const Values pods{{"JOB_COMPLETION_INDEX", "1"}, {"COL_WORLD_SIZE", "3"}};
  CHECK(hosts_by(pods, "train-1.svc") == Hosts{"train-0", "train-1", "train-2"});
  CHECK(hosts_by(pods, "train-2").empty());
  CHECK(hosts_by({{"RANK", "1"}, {"WORLD_SIZE", "4"}, {"LOCAL_RANK", "1"}, {"LOCAL_WORLD_SIZE", "2"}}).empty());
}

TEST_CASE("places: missing ranks are named with their hosts, folded", "[group]") {
  Hosts hosts;
  for (int rank = 0; rank < 128; ++rank) hosts.push_back("node" + std::to_string(rank / 8));
  std::vector<int> last;
  for (int rank = 120; rank < 128; ++rank) last.push_back(rank);
  CHECK(ranks_on_hosts(last, hosts) == "ranks 120-127 on node15");
  CHECK(ranks_on_hosts({3, 4, 11}, hosts) == "ranks 3, 4 on node0, rank 11 on node1");
  CHECK(ranks_on_hosts({3, 4, 11}, {}) == "ranks 3, 4, 11");
  std::vector<int> firsts;
  for (int rank = 0; rank < 128; rank += 8) firsts.push_back(rank);
  CHECK(ranks_on_hosts(firsts, hosts).ends_with("rank 56 on node7 and 8 more"));
}
