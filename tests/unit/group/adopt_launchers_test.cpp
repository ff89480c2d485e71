// What the variables of other launchers are taken for.
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <col/error.hpp>

#include "core/env.hpp"
#include "group/adopt/launchers.hpp"
#include "support/catch.hpp"

using col::ErrorCode;
using namespace col::group::adopt;

namespace {

using Values = std::map<std::string, std::string, std::less<>>;

Lookup in(const Values& values) {
  return [values](std::string_view name) -> std::optional<std::string> {
    // As env::get does: a name that is read but not documented is a bug.
    bool listed = false;
    for (const auto& variable : col::core::env::table()) listed |= variable.name == name;
    for (const auto& variable : col::core::env::launcher_table()) listed |= variable.name == name;
    if (!listed) throw std::runtime_error(std::string(name) + " is in no table");
    const auto it = values.find(name);
    if (it == values.end() || it->second.empty()) return std::nullopt;
    return it->second;
  };
}

Values with(Values values, const std::string& name, const std::string& value) {
  values[name] = value;
  return values;
}

Values without(Values values, const std::string& name) {
  values.erase(name);
  return values;
}

std::string refusal(const Values& values) {
  try {
    find_launched_rank(in(values));
  } catch (const col::Error& error) {
    CHECK(error.code() == ErrorCode::invalid_argument);
    return error.message();
  }
  return "";
}

const Values kTorchrun = {{"RANK", "2"},
                          {"WORLD_SIZE", "4"},
                          {"LOCAL_RANK", "2"},
                          {"LOCAL_WORLD_SIZE", "4"},
                          {"GROUP_RANK", "0"},
                          {"GROUP_WORLD_SIZE", "1"},
                          {"MASTER_ADDR", "127.0.0.1"},
                          {"MASTER_PORT", "29500"},
                          {"TORCHELASTIC_RUN_ID", "none"},
                          {"TORCHELASTIC_RESTART_COUNT", "3"}};
const Values kSlurm = {{"SLURM_JOB_ID", "17"},        {"SLURM_STEP_ID", "1"},        {"SLURM_PROCID", "3"},
                       {"SLURM_STEP_NUM_TASKS", "4"}, {"SLURM_STEP_NUM_NODES", "1"}, {"SLURM_STEP_TASKS_PER_NODE", "4"},
                       {"SLURM_LOCALID", "3"},        {"SLURM_NODEID", "0"}};
const Values kOpenMpi = {{"OMPI_COMM_WORLD_RANK", "1"},       {"OMPI_COMM_WORLD_SIZE", "2"},
                         {"OMPI_COMM_WORLD_LOCAL_RANK", "1"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                         {"PMIX_NAMESPACE", "1305083905"},    {"PMIX_RANK", "1"}};
const Values kMpich = {
    {"PMI_RANK", "0"}, {"PMI_SIZE", "3"}, {"PMI_FD", "6"}, {"MPI_LOCALRANKID", "0"}, {"MPI_LOCALNRANKS", "3"}};
const Values kKubernetes = {{"JOB_COMPLETION_INDEX", "1"}, {"WORLD_SIZE", "2"}};

}  // namespace

TEST_CASE("launchers: nothing set is no place", "[adopt]") {
  CHECK_FALSE(find_launched_rank(in({})).has_value());
  CHECK(why_alone(in({})).empty());
}

TEST_CASE("launchers: torchrun", "[adopt]") {
  const auto place = find_launched_rank(in(kTorchrun));
  REQUIRE(place);
  CHECK(place->launcher == "torchrun");
  CHECK(place->rank == 2);
  CHECK(place->world_size == 4);
  CHECK(place->local_rank == 2);
  CHECK(place->local_world_size == 4);
  CHECK(place->restart_count == 3);
  CHECK(place->several_hosts.empty());
  CHECK(place->believed.find("RANK=2") != std::string::npos);
  // Run, port and address make the job; the rank does not.
  CHECK(find_launched_rank(in(with(kTorchrun, "RANK", "1")))->job == place->job);
  CHECK(find_launched_rank(in(with(kTorchrun, "MASTER_PORT", "1")))->job != place->job);
  CHECK(find_launched_rank(in(with(kTorchrun, "TORCHELASTIC_RUN_ID", "x")))->job != place->job);
  CHECK(find_launched_rank(in({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "0"}}))->job.empty());
}

TEST_CASE("launchers: the line of a place differs by rank, job and launcher, and nothing set has none", "[adopt]") {
  CHECK(place_line(in({})).empty());
  const Values ours = {{"COL_RANK", "1"}, {"COL_WORLD_SIZE", "4"}, {"COL_JOB_ID", "j"}, {"COL_STORE", "file:///s"}};
  for (const auto* const name : {"COL_RANK", "COL_JOB_ID", "COL_STORE"})
    CHECK(place_line(in(with(ours, name, "0"))) != place_line(in(ours)));
  // They are left over, and contradict themselves.
  CHECK(place_line(in(with(with(with(ours, "RANK", "5"), "WORLD_SIZE", "2"), "LOCAL_RANK", "0"))) ==
        place_line(in(ours)));
  for (const auto* const name : {"RANK", "MASTER_PORT"})
    CHECK(place_line(in(with(kTorchrun, name, "0"))) != place_line(in(kTorchrun)));
}

TEST_CASE("launchers: a set without a part is skipped, with a word in the log where it looks like a mistake",
          "[adopt]") {
  // PyTorchJob sets these for a pod, which may hold several processes.
  const Values pod = {{"RANK", "1"}, {"WORLD_SIZE", "3"}, {"MASTER_PORT", "23456"}};
  CHECK_FALSE(find_launched_rank(in(pod)).has_value());
  CHECK(why_alone(in(pod)).find("LOCAL_RANK is not") != std::string::npos);
  CHECK(why_alone(in(with(pod, "WORLD_SIZE", "1"))).empty());
  CHECK_FALSE(find_launched_rank(in({{"PMIX_RANK", "1"}, {"PMIX_NAMESPACE", "x"}})).has_value());
  CHECK(why_alone(in({{"PMIX_RANK", "1"}})).find("how many ranks") != std::string::npos);
  CHECK_FALSE(find_launched_rank(in(without(kMpich, "PMI_FD"))).has_value());
  CHECK(why_alone(in(without(kMpich, "PMI_FD"))).find("PMI_FD") != std::string::npos);
  // Within an allocation, but not started by srun.
  CHECK_FALSE(find_launched_rank(in(without(kSlurm, "SLURM_STEP_ID"))).has_value());
  CHECK(why_alone(in(without(kSlurm, "SLURM_STEP_ID"))).empty());
  CHECK_FALSE(find_launched_rank(in(without(kOpenMpi, "OMPI_COMM_WORLD_LOCAL_SIZE"))).has_value());
  CHECK_FALSE(find_launched_rank(in({{"JOB_COMPLETION_INDEX", "1"}})).has_value());
  CHECK_FALSE(find_launched_rank(in(with(kTorchrun, "LOCAL_RANK", ""))).has_value());
  // What a skipped set holds is not looked at.
  CHECK_FALSE(find_launched_rank(in({{"RANK", "first"}, {"WORLD_SIZE", "-1"}})).has_value());
}

TEST_CASE("launchers: a complete set that contradicts itself is refused by name", "[adopt]") {
  CHECK(refusal(with(kTorchrun, "RANK", "4")) ==
        "RANK=4 is not below WORLD_SIZE=4; correct what sets them, or unset them");
  CHECK(refusal(with(kTorchrun, "RANK", "two")).find("RANK='two' is not a whole number") == 0);
  CHECK(refusal(with(kTorchrun, "WORLD_SIZE", "0")).find("WORLD_SIZE='0'") == 0);
  CHECK(refusal(with(kTorchrun, "LOCAL_RANK", "4")).find("LOCAL_RANK=4 is not below LOCAL_WORLD_SIZE=4") == 0);
  CHECK(refusal(with(with(kTorchrun, "GROUP_WORLD_SIZE", "2"), "GROUP_RANK", "2")).find("GROUP_RANK=2 is not below") ==
        0);
  CHECK(refusal(with(kTorchrun, "LOCAL_WORLD_SIZE", "5")).find("LOCAL_WORLD_SIZE=5 is above WORLD_SIZE=4") == 0);
  CHECK(refusal(with(kSlurm, "SLURM_PROCID", "4")).find("SLURM_PROCID=4") == 0);
  CHECK(refusal(with(kOpenMpi, "OMPI_COMM_WORLD_RANK", "-1")).find("OMPI_COMM_WORLD_RANK='-1'") == 0);
  CHECK(refusal(with(kMpich, "PMI_RANK", "3")).find("PMI_RANK=3 is not below PMI_SIZE=3") == 0);
  CHECK(refusal(with(kMpich, "PMI_FD", "x")).find("PMI_FD='x'") == 0);
  CHECK(refusal(with(kKubernetes, "JOB_COMPLETION_INDEX", "2")).find("JOB_COMPLETION_INDEX=2") == 0);
}

TEST_CASE("launchers: Slurm, Open MPI, MPICH and Kubernetes", "[adopt]") {
  const auto slurm = find_launched_rank(in(kSlurm));
  REQUIRE(slurm);
  CHECK((slurm->launcher == "slurm" && slurm->rank == 3 && slurm->world_size == 4 && slurm->local_world_size == 4));
  CHECK(slurm->job == "17.1");
  CHECK(slurm->several_hosts.empty());
  const auto open_mpi = find_launched_rank(in(kOpenMpi));
  REQUIRE(open_mpi);
  CHECK((open_mpi->launcher == "openmpi" && open_mpi->rank == 1 && open_mpi->world_size == 2));
  CHECK(open_mpi->job.find("1305083905") == 0);
  const auto mpich = find_launched_rank(in(kMpich));
  REQUIRE(mpich);
  CHECK((mpich->launcher == "mpich" && mpich->rank == 0 && mpich->world_size == 3 && mpich->pmi_fd == 6));
  CHECK(mpich->job.empty());
  const auto pmi = find_launched_rank(in({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"COL_STORE", "file:///s"}}));
  REQUIRE(pmi);
  CHECK((pmi->launcher == "pmi" && pmi->rank == 1 && pmi->local_world_size == 0 && !pmi->pmi_fd));
  const auto pod = find_launched_rank(in(kKubernetes));
  REQUIRE(pod);
  CHECK((pod->launcher == "kubernetes" && pod->rank == 1 && pod->world_size == 2));
  CHECK((pod->local_rank == 0 && pod->local_world_size == 1));
  CHECK_FALSE(pod->several_hosts.empty());
  CHECK(find_launched_rank(in(with(kKubernetes, "COL_WORLD_SIZE", "3")))->world_size == 3);
}

TEST_CASE("launchers: the first complete set of several is taken", "[adopt]") {
  Values all = kKubernetes;
  all.insert(kMpich.begin(), kMpich.end());
  CHECK(find_launched_rank(in(all))->launcher == "mpich");
  all.insert(kOpenMpi.begin(), kOpenMpi.end());
  CHECK(find_launched_rank(in(all))->launcher == "openmpi");
  Values slurm_and_torchrun = kSlurm;
  slurm_and_torchrun.insert(kTorchrun.begin(), kTorchrun.end());
  CHECK(find_launched_rank(in(slurm_and_torchrun))->launcher == "torchrun");
  CHECK(find_launched_rank(in(without(slurm_and_torchrun, "LOCAL_RANK")))->launcher == "slurm");
  Values slurm_pmi2 = kSlurm;  // srun --mpi=pmi2
  slurm_pmi2.insert({{"PMI_RANK", "3"}, {"PMI_SIZE", "4"}, {"PMI_FD", "7"}});
  CHECK(find_launched_rank(in(slurm_pmi2))->launcher == "slurm");
}

TEST_CASE("launchers: below an mpirun in an allocation, Slurm's variables are those of mpirun's daemon", "[adopt]") {
  Values daemon = with(with(kSlurm, "SLURM_PROCID", "0"), "SLURM_STEP_NUM_TASKS", "1");
  Values rank = daemon;
  rank.insert(kOpenMpi.begin(), kOpenMpi.end());
  CHECK(find_launched_rank(in(rank))->launcher == "openmpi");
  CHECK(find_launched_rank(in(rank))->world_size == 2);
  rank = daemon;
  rank.insert(kMpich.begin(), kMpich.end());
  CHECK(find_launched_rank(in(rank))->launcher == "mpich");
  CHECK(find_launched_rank(in(rank))->world_size == 3);
}

TEST_CASE("launchers: several hosts are recognised, by the variables that say so", "[adopt]") {
  const auto hosts = [](const Values& values) { return find_launched_rank(in(values))->several_hosts; };
  CHECK(hosts(with(kTorchrun, "GROUP_WORLD_SIZE", "2")) == "GROUP_WORLD_SIZE=2");
  CHECK(hosts(with(with(kTorchrun, "LOCAL_WORLD_SIZE", "2"), "LOCAL_RANK", "0")) ==
        "LOCAL_WORLD_SIZE=2 of WORLD_SIZE=4");
  CHECK(hosts({{"RANK", "3"}, {"WORLD_SIZE", "4"}, {"LOCAL_RANK", "1"}}) == "LOCAL_RANK=1 with RANK=3");
  CHECK(hosts({{"RANK", "3"}, {"WORLD_SIZE", "4"}, {"LOCAL_RANK", "3"}}).empty());
  CHECK(hosts(with(kSlurm, "SLURM_STEP_NUM_NODES", "2")) == "SLURM_STEP_NUM_NODES=2");
  CHECK(hosts(with(kOpenMpi, "OMPI_COMM_WORLD_SIZE", "4")) == "OMPI_COMM_WORLD_LOCAL_SIZE=2 of OMPI_COMM_WORLD_SIZE=4");
  CHECK(hosts(with(kMpich, "PMI_SIZE", "6")) == "MPI_LOCALNRANKS=3 of PMI_SIZE=6");
  const Values two_nodes = {{"SLURM_JOB_ID", "1"},         {"SLURM_STEP_ID", "0"},
                            {"SLURM_PROCID", "2"},         {"SLURM_STEP_NUM_TASKS", "3"},
                            {"SLURM_STEP_NUM_NODES", "2"}, {"SLURM_STEP_TASKS_PER_NODE", "2,1"},
                            {"SLURM_LOCALID", "0"},        {"SLURM_NODEID", "1"}};
  CHECK(find_launched_rank(in(two_nodes))->local_world_size == 1);
  CHECK(find_launched_rank(in(two_nodes))->node == "1");
}

TEST_CASE("launchers: in a heterogeneous job of Slurm's, the ranks of a node are those that it lists", "[adopt]") {
  // As Slurm 22.05 sets them for `srun --nodelist=n3 --ntasks=1 p : --nodelist=n1 --ntasks=2 p`.
  const Values zero = {
      {"SLURM_JOB_ID", "1"},         {"SLURM_STEP_ID", "0"},        {"SLURM_PROCID", "0"},
      {"SLURM_STEP_NUM_TASKS", "3"}, {"SLURM_STEP_NUM_NODES", "2"}, {"SLURM_STEP_TASKS_PER_NODE", "2,1"},
      {"SLURM_LOCALID", "0"},        {"SLURM_NODEID", "0"},         {"SLURM_GTIDS", "0"}};
  CHECK(find_launched_rank(in(zero))->local_world_size == 1);
  const Values two = with(with(with(with(zero, "SLURM_PROCID", "2"), "SLURM_LOCALID", "1"), "SLURM_NODEID", "1"),
                          "SLURM_GTIDS", "1,2");
  CHECK(find_launched_rank(in(two))->local_rank == 1);
  CHECK(find_launched_rank(in(two))->local_world_size == 2);
  // A list that does not have the rank is another one's.
  CHECK(find_launched_rank(in(with(zero, "SLURM_GTIDS", "1,2")))->local_world_size == 2);
  CHECK(ranks_on_node("5,0,2") == std::vector<int>{0, 2, 5});
  for (const char* text : {"", ",", ",1", "1,,2", "a", "1-3", "-1", "1 2"}) {
    INFO(text);
    CHECK(ranks_on_node(text).empty());
  }
}

TEST_CASE("launchers: Slurm's list of tasks per node", "[adopt]") {
  CHECK(tasks_on_node("4", 0) == 4);
  CHECK_FALSE(tasks_on_node("4", 1).has_value());
  CHECK(tasks_on_node("2(x3),1", 0) == 2);
  CHECK(tasks_on_node("2(x3),1", 2) == 2);
  CHECK(tasks_on_node("2(x3),1", 3) == 1);
  CHECK_FALSE(tasks_on_node("2(x3),1", 4).has_value());
  for (const char* text : {"", "x", "0", "2(", "2(x", "2(x)", "2(x0)", "2(x3", "2(y3)", "2(x3)z", "-1", ",2"}) {
    INFO(text);
    CHECK_FALSE(tasks_on_node(text, 0).has_value());
  }
}
