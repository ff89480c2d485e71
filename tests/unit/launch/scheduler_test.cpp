#include "launch/nodes/scheduler.hpp"

#include <map>
#include <optional>
#include <string>

#include "launch/job/launch_error.hpp"
#include "support/catch.hpp"

using namespace col::launch;
using Variables = std::map<std::string, std::string>;

namespace {

Lookup in(const Variables& variables) {
  return [variables](const char* name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found != variables.end() && !found->second.empty() ? std::optional(found->second) : std::nullopt;
  };
}

const Variables kSlurm = {
    {"SLURM_JOB_ID", "77"},        {"SLURM_STEP_ID", "3"},        {"SLURM_STEP_NODELIST", "n[04-06]"},
    {"SLURM_STEP_NUM_NODES", "3"}, {"SLURM_STEP_NUM_TASKS", "3"}, {"SLURM_NODEID", "2"}};

Variables with(Variables variables, const std::string& name, const std::string& value) {
  variables[name] = value;
  return variables;
}

}  // namespace

TEST_CASE("scheduler: the first host of every form of a list", "[launch]") {
  const std::map<std::string, std::string> forms = {{"n1", "n1"},
                                                    {"n1,n2", "n1"},
                                                    {"n[1-3]", "n1"},
                                                    {"n[01-03,7],m5", "n01"},
                                                    {"n[7,9]", "n7"},
                                                    {"n[5]", "n5"},
                                                    {"m5,n[1-2]", "m5"},
                                                    {"n[1-2]x", "n1x"},
                                                    {"n[1-2]x,m3", "n1x"},
                                                    {"a-b[3-4]", "a-b3"},
                                                    {"r[1-2]n[3-4]", "r1n3"},
                                                    {"r[1,2]n[3,4],m", "r1n3"},
                                                    {"n[009-011].local", "n009.local"},
                                                    {"", ""}};
  for (const auto& [list, first] : forms) {
    INFO(list);
    CHECK(first_host(list) == first);
  }
  for (const char* broken : {"n[", "n[1", "n[1-", "]", "[]"}) CHECK_NOTHROW(first_host(broken));
}

TEST_CASE("scheduler: a Slurm step with a task on each node says all", "[launch]") {
  const NodePlace place = find_node({}, in(kSlurm));
  CHECK(place.min_nodes == 3);
  CHECK(place.max_nodes == 3);
  CHECK(place.node_rank == 2);
  CHECK(place.id == "slurm-77.3");
  CHECK(place.endpoint.starts_with("n04:"));
  const int port = std::stoi(place.endpoint.substr(4));
  CHECK(port >= 20'000);
  CHECK(port < 29'000);
  // The same on each node, another for another step.
  CHECK(find_node({}, in(with(kSlurm, "SLURM_NODEID", "0"))).endpoint == place.endpoint);
  CHECK(find_node({}, in(with(kSlurm, "SLURM_STEP_ID", "4"))).endpoint != place.endpoint);
}

TEST_CASE("scheduler: incomplete or absurd Slurm variables count as none", "[launch]") {
  for (const auto& [name, kept] : kSlurm) {
    INFO(name);
    CHECK(find_node({}, in(with(kSlurm, name, ""))).max_nodes == 1);
    CHECK_THROWS_AS(find_node({.scheduler = Scheduler::slurm}, in(with(kSlurm, name, ""))), LaunchError);
  }
  for (const char* number : {"0", "-1", "x", "3x", "99999999999999999999"})
    CHECK(find_node({}, in(with(kSlurm, "SLURM_STEP_NUM_NODES", number))).max_nodes == 1);
}

TEST_CASE("scheduler: several tasks on a node are refused, as each would start a job", "[launch]") {
  for (const auto scheduler : {Scheduler::automatic, Scheduler::slurm}) {
    try {
      find_node({.scheduler = scheduler}, in(with(kSlurm, "SLURM_STEP_NUM_TASKS", "6")));
      FAIL("no error");
    } catch (const LaunchError& error) {
      CHECK(error.exit_code() == 2);
      CHECK_THAT(error.what(), Catch::Contains("--ntasks-per-node=1"));
    }
  }
  CHECK(find_node({.scheduler = Scheduler::none}, in(with(kSlurm, "SLURM_STEP_NUM_TASKS", "6"))).max_nodes == 1);
}

TEST_CASE("scheduler: options win over what a scheduler says", "[launch]") {
  const NodePlace place =
      find_node({.min_nodes = 2, .max_nodes = 4, .node_rank = 1, .endpoint = "ada:9", .rendezvous_id = "mine"},
                in(with(kSlurm, "COL_RDZV_ENDPOINT", "bob:1")));
  CHECK(place.min_nodes == 2);
  CHECK(place.max_nodes == 4);
  CHECK(place.node_rank == 1);
  CHECK(place.endpoint == "ada:9");
  CHECK(place.id == "mine");
  CHECK(find_node({}, in(with(kSlurm, "COL_RDZV_ENDPOINT", "bob:1"))).endpoint == "bob:1");
  const NodePlace none = find_node({.scheduler = Scheduler::none}, in(kSlurm));
  CHECK(none.max_nodes == 1);
  CHECK(none.node_rank == -1);
  CHECK(none.endpoint.empty());
}

TEST_CASE("scheduler: an indexed Kubernetes job says which pod, the options how many", "[launch]") {
  const NodePlace place = find_node({.min_nodes = 2, .max_nodes = 3}, in({{"JOB_COMPLETION_INDEX", "2"}}));
  CHECK(place.node_rank == 2);
  CHECK(place.min_nodes == 2);
  CHECK(place.max_nodes == 3);
  CHECK(find_node({}, in({{"JOB_COMPLETION_INDEX", "2"}})).node_rank == -1);
  CHECK_THROWS_AS(find_node({.scheduler = Scheduler::kubernetes}, in({{"JOB_COMPLETION_INDEX", "2"}})), LaunchError);
  CHECK_THROWS_AS(find_node({.max_nodes = 2, .scheduler = Scheduler::kubernetes}, in({})), LaunchError);
}

TEST_CASE("scheduler: nodes are a number or a range", "[launch]") {
  CHECK(parse_node_counts("2") == std::pair(2, 2));
  CHECK(parse_node_counts("1:4") == std::pair(1, 4));
  for (const char* text : {"", "0", "4:1", "1:", ":4", "a", "1:2:3", "1-4"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_node_counts(text));
  }
}

TEST_CASE("scheduler: a training operator's variables say all", "[launch]") {
  const Variables operated = {
      {"PET_NNODES", "4"}, {"PET_NODE_RANK", "3"}, {"PET_MASTER_ADDR", "w-0"}, {"PET_MASTER_PORT", "23456"}};
  const NodePlace place = find_node({}, in(operated));
  CHECK(place.min_nodes == 4);
  CHECK(place.max_nodes == 4);
  CHECK(place.node_rank == 3);
  CHECK(place.endpoint == "w-0:23456");
  CHECK(find_node({}, in(with(operated, "PET_MASTER_PORT", ""))).endpoint == "w-0:29400");
  CHECK(find_node({}, in(with(operated, "PET_MASTER_ADDR", "fd00::1"))).endpoint == "[fd00::1]:23456");
  CHECK(find_node({}, in(with(operated, "PET_RDZV_ID", "x"))).id == "x");
  for (const char* name : {"PET_NODE_RANK", "PET_MASTER_ADDR"})
    CHECK(find_node({}, in(with(operated, name, ""))).max_nodes == 1);
}

TEST_CASE("scheduler: a training operator's elastic job has a range of nodes, which meet without numbers", "[launch]") {
  const Variables elastic = {{"PET_NNODES", "2:4"}, {"PET_RDZV_ENDPOINT", "w-0:29500"}, {"PET_RDZV_BACKEND", "c10d"}};
  const NodePlace place = find_node({}, in(elastic));
  CHECK(place.min_nodes == 2);
  CHECK(place.max_nodes == 4);
  CHECK(place.node_rank == -1);
  CHECK(place.endpoint == "w-0:29500");
  for (const char* counts : {"4:2", "0:2", "2:", ":2", "2:4:6", "two"})
    CHECK(find_node({}, in(with(elastic, "PET_NNODES", counts))).max_nodes == 1);
}
