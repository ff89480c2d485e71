#include <map>
#include <string>
#include <vector>

#include "launch/job/assignment.hpp"
#include "launch/processes/environment.hpp"
#include "launch/processes/job_directory.hpp"
#include "support/catch.hpp"

using namespace col::launch;
using Found = std::multimap<std::string, std::string>;
using col::launch::expand_pattern;
using col::launch::RankNames;
using col::launch::why_no_pattern;

namespace {

struct Scene {
  JobSpec spec{.programs = {{.command = {"a"}, .ranks = 4}}};
  Assignment assignment{.local_ranks = 4, .world_size = 4, .job_id = "job", .master_port = 4711};
  int cpus = 8;
  std::vector<std::string> gpus = {};

  Environment make(std::vector<const char*> inherited) const {
    inherited.push_back(nullptr);
    return Environment(inherited.data(), {.spec = spec,
                                          .assignment = assignment,
                                          .directory = JobDirectory("job"),
                                          .host = "ada",
                                          .cpus = [this] { return cpus; },
                                          .gpus = gpus});
  }
  // As a program sees it: a name that stands twice would show.
  Found of(int local_rank, const std::vector<const char*>& inherited = {}) const {
    Environment environment = make(inherited);
    Found found;
    for (const char* entry : environment.of_rank(local_rank)) {
      if (entry == nullptr) break;
      const std::string text = entry;
      found.emplace(text.substr(0, text.find('=')), text.substr(text.find('=') + 1));
    }
    return found;
  }
};

// Its value; "(unset)", or "(twice)".
std::string value(const Found& found, const std::string& name) {
  const auto count = found.count(name);
  return count == 0 ? "(unset)" : count > 1 ? "(twice)" : found.find(name)->second;
}

}  // namespace

TEST_CASE("environment: each rank is told who it is, by the names of col and of torchrun", "[launch]") {
  Scene scene;
  scene.assignment = {.node_rank = 2,
                      .nodes = 3,
                      .first_rank = 8,
                      .local_ranks = 4,
                      .world_size = 12,
                      .restart = 5,
                      .job_id = "job",
                      .store_url = "tcp://10.0.0.1:7001",
                      .store_token = "sesame",
                      .master_address = "10.0.0.1",
                      .master_port = 4711};
  scene.spec.lifecycle.max_restarts = 7;
  const JobDirectory directory("job");
  for (int local = 0; local < 4; ++local) {
    const Found found = scene.of(local);
    const std::map<std::string, std::string> expected = {
        {"COL_RANK", std::to_string(8 + local)},
        {"COL_LOCAL_RANK", std::to_string(local)},
        {"COL_WORLD_SIZE", "12"},
        {"COL_LOCAL_WORLD_SIZE", "4"},
        {"COL_NODE_RANK", "2"},
        {"COL_NNODES", "3"},
        {"COL_JOB_ID", "job"},
        {"COL_RESTART_COUNT", "5"},
        {"COL_STORE", "tcp://10.0.0.1:7001"},
        {"COL_STORE_TOKEN", "sesame"},
        {"COL_CONTROL", directory.control()},
        {"COL_ERROR_FILE", directory.error_file(local)},
        {"RANK", std::to_string(8 + local)},
        {"LOCAL_RANK", std::to_string(local)},
        {"WORLD_SIZE", "12"},
        {"LOCAL_WORLD_SIZE", "4"},
        {"GROUP_RANK", "2"},
        {"GROUP_WORLD_SIZE", "3"},
        {"ROLE_RANK", std::to_string(8 + local)},
        {"ROLE_WORLD_SIZE", "12"},
        {"ROLE_NAME", "default"},
        {"MASTER_ADDR", "10.0.0.1"},
        {"MASTER_PORT", "4711"},
        {"TORCHELASTIC_RESTART_COUNT", "5"},
        {"TORCHELASTIC_MAX_RESTARTS", "7"},
        {"TORCHELASTIC_RUN_ID", "job"},
        {"TORCHELASTIC_ERROR_FILE", directory.torch_error_file(local)},
    };
    for (const auto& [name, wanted] : expected) {
      INFO(name);
      CHECK(value(found, name) == wanted);
    }
  }
}

TEST_CASE("environment: one node alone has its store in the job directory, and no token", "[launch]") {
  const Found found = Scene{}.of(0, {"COL_STORE_TOKEN=of an outer job", "COL_STORE=tcp://x:1"});
  CHECK(value(found, "COL_STORE") == "file://" + JobDirectory("job").store());
  CHECK(value(found, "COL_STORE_TOKEN") == "(unset)");
}

TEST_CASE("environment: secrets with which nodes meet are not for ranks", "[launch]") {
  const Found found = Scene{}.of(0, {"COL_RDZV_TOKEN=a", "COL_RDZV_TOKEN_FILE=b", "COL_STORE_TOKEN_FILE=c"});
  for (const char* name : {"COL_RDZV_TOKEN", "COL_RDZV_TOKEN_FILE", "COL_STORE_TOKEN_FILE"})
    CHECK(value(found, name) == "(unset)");
}

TEST_CASE("environment: what the launcher sets replaces what was there, whoever put it", "[launch]") {
  const std::vector<std::string> names = {"COL_RANK",  "COL_WORLD_SIZE", "COL_STORE",  "COL_CONTROL",
                                          "RANK",      "LOCAL_RANK",     "WORLD_SIZE", "MASTER_ADDR",
                                          "ROLE_RANK", "COL_ERROR_FILE", "COL_JOB_ID"};
  const Found plain = Scene{}.of(1);
  for (const std::string& name : names) {
    INFO(name);
    const std::string mine = name + "=99";
    const std::string wanted = value(plain, name);
    CHECK(value(Scene{}.of(1, {mine.c_str()}), name) == wanted);
    Scene set, per_rank, program, removed;
    set.spec.environment.set = {mine};
    CHECK(value(set.of(1), name) == wanted);
    per_rank.spec.environment.per_rank = {mine};
    CHECK(value(per_rank.of(1), name) == wanted);
    program.spec.programs[0].environment = {mine};
    CHECK(value(program.of(1), name) == wanted);
    removed.spec.environment.remove = {name, "*"};
    CHECK(value(removed.of(1), name) == wanted);
  }
}

TEST_CASE("environment: of what the user asks for, the closer to the rank counts", "[launch]") {
  Scene scene;
  scene.spec.programs = {{.command = {"a"}, .ranks = 1, .environment = {"A=program", "P=one"}},
                         {.command = {"b"}, .ranks = 3, .environment = {"P=two"}}};
  scene.spec.environment = {.set = {"A=set", "B=first", "B=last", "C=set", "E=x=y", "EMPTY="},
                            .remove = {"D"},
                            .per_rank = {"A=rank%r", "B=%l of %w on %h"}};
  const std::vector<const char*> inherited = {"A=inherited", "B=inherited", "C=inherited", "D=inherited",
                                              "F=inherited"};
  const Found first = scene.of(0, inherited);
  const Found second = scene.of(1, inherited);
  CHECK(value(first, "A") == "program");
  CHECK(value(second, "A") == "rank1");
  CHECK(value(first, "B") == "0 of 4 on ada");
  CHECK(value(second, "B") == "1 of 4 on ada");
  CHECK(value(first, "C") == "set");
  CHECK(value(first, "D") == "(unset)");
  CHECK(value(first, "E") == "x=y");
  CHECK(value(first, "EMPTY").empty());
  CHECK(value(first, "F") == "inherited");
  CHECK(value(first, "P") == "one");
  CHECK(value(second, "P") == "two");
  CHECK(value(scene.of(3, inherited), "P") == "two");
  // What was removed may be given anew.
  scene.spec.environment.set = {"D=set"};
  CHECK(value(scene.of(0, inherited), "D") == "set");
}

TEST_CASE("environment: names are removed one by one, or all that begin alike", "[launch]") {
  Scene scene;
  scene.spec.environment.remove = {"ONE", "MANY_*"};
  const Found found = scene.of(0, {"ONE=1", "ONE_MORE=1", "MANY_=1", "MANY_THINGS=1", "MANY=1", "many_x=1"});
  CHECK(value(found, "ONE") == "(unset)");
  CHECK(value(found, "ONE_MORE") == "1");
  CHECK(value(found, "MANY_") == "(unset)");
  CHECK(value(found, "MANY_THINGS") == "(unset)");
  CHECK(value(found, "MANY") == "1");
  CHECK(value(found, "many_x") == "1");
  scene.spec.environment.remove = {"*"};
  const Found none = scene.of(0, {"ONE=1", "HOME=/h"});
  CHECK(value(none, "HOME") == "(unset)");
  CHECK(value(none, "COL_RANK") == "0");
}

TEST_CASE("environment: an outer launcher's rank variables are left out", "[launch]") {
  const Found found = Scene{}.of(0, {"PMI_RANK=1", "PMIX_NAMESPACE=x", "OMPI_COMM_WORLD_RANK=1", "SLURM_PROCID=1",
                                     "SLURM_JOB_ID=7", "PMIXED=kept", "MV2_COMM_WORLD_RANK=1", "PALS_RANKID=1"});
  for (const char* name :
       {"PMI_RANK", "PMIX_NAMESPACE", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID", "MV2_COMM_WORLD_RANK", "PALS_RANKID"})
    CHECK(value(found, name) == "(unset)");
  CHECK(value(found, "SLURM_JOB_ID") == "7");
  CHECK(value(found, "PMIXED") == "kept");
}

TEST_CASE("environment: names of MPI launchers are there when asked for, with this job's numbers", "[launch]") {
  Scene scene;
  scene.assignment.first_rank = 4;
  scene.assignment.world_size = 8;
  CHECK(value(scene.of(1), "OMPI_COMM_WORLD_RANK") == "(unset)");
  scene.spec.environment.mpi_names = true;
  const Found found = scene.of(1, {"PMI_RANK=77", "OMPI_COMM_WORLD_SIZE=77"});
  CHECK(value(found, "OMPI_COMM_WORLD_RANK") == "5");
  CHECK(value(found, "OMPI_COMM_WORLD_SIZE") == "8");
  CHECK(value(found, "OMPI_COMM_WORLD_LOCAL_RANK") == "1");
  CHECK(value(found, "OMPI_COMM_WORLD_LOCAL_SIZE") == "4");
  CHECK(value(found, "PMI_RANK") == "5");
  CHECK(value(found, "PMI_SIZE") == "8");
  scene.spec.environment = {.pmi = true};
  CHECK(value(scene.of(1), "PMI_RANK") == "5");
  CHECK(value(scene.of(1), "OMPI_COMM_WORLD_RANK") == "(unset)");
}

TEST_CASE("environment: devices are given to each rank, or left alone", "[launch]") {
  Scene scene;
  CHECK(value(scene.of(1, {"CUDA_VISIBLE_DEVICES=3"}), "CUDA_VISIBLE_DEVICES") == "3");
  scene.gpus = {"a", "b,c", "d", "e"};
  CHECK(value(scene.of(1, {"CUDA_VISIBLE_DEVICES=3"}), "CUDA_VISIBLE_DEVICES") == "b,c");
}

TEST_CASE("environment: OMP_NUM_THREADS shares the CPUs out when it is unset", "[launch]") {
  Scene scene;
  scene.assignment.local_ranks = 3;
  CHECK(scene.make({}).omp_threads() == 2);
  CHECK(value(scene.of(0), "OMP_NUM_THREADS") == "2");
  CHECK(scene.make({"OMP_NUM_THREADS=6"}).omp_threads() == 0);
  CHECK(value(scene.of(0, {"OMP_NUM_THREADS=6"}), "OMP_NUM_THREADS") == "6");
  scene.spec.environment.set = {"OMP_NUM_THREADS=5"};
  CHECK(value(scene.of(0), "OMP_NUM_THREADS") == "5");
  scene.spec.environment = {.per_rank = {"OMP_NUM_THREADS=%l"}};
  CHECK(value(scene.of(2), "OMP_NUM_THREADS") == "2");
  Scene crowded;
  crowded.assignment.local_ranks = 9;
  CHECK(crowded.make({}).omp_threads() == 1);
}

TEST_CASE("environment: a name that the caller has twice is there once", "[launch]") {
  const Found found = Scene{}.of(0, {"A=first", "A=second", "WORLD_SIZE=1", "WORLD_SIZE=2"});
  CHECK(value(found, "A") == "first");
  CHECK(value(found, "WORLD_SIZE") == "4");
}

TEST_CASE("environment: job ids differ", "[launch]") {
  CHECK(make_job_id() != make_job_id());
  CHECK(variable_name("A=b=c") == "A");
  CHECK(variable_name("A") == "A");
}

TEST_CASE("rank pattern: every letter stands for its part of the rank", "[launch]") {
  const RankNames names{
      .rank = 7, .local_rank = 3, .node_rank = 1, .world_size = 128, .host = "node1", .job_id = "j5", .restart = 2};
  CHECK(expand_pattern("%r %l %n %w %h %j %g %s", names, "err") == "7 3 1 128 node1 j5 2 err");
  CHECK(expand_pattern("run/%h/%R.%s", names, "out") == "run/node1/007.out");
  CHECK(expand_pattern("100%% of %%r", names) == "100% of %r");
  CHECK(expand_pattern("", names).empty());
  CHECK(expand_pattern("%s", names).empty());
}

TEST_CASE("rank pattern: the zeros of %R are those of the highest rank, not of the number of ranks", "[launch]") {
  CHECK(expand_pattern("%R", {.rank = 0, .world_size = 1}) == "0");
  CHECK(expand_pattern("%R", {.rank = 3, .world_size = 10}) == "3");
  CHECK(expand_pattern("%R", {.rank = 3, .world_size = 11}) == "03");
  CHECK(expand_pattern("%R", {.rank = 999, .world_size = 1000}) == "999");
}

TEST_CASE("rank pattern: a host's name is not expanded again", "[launch]") {
  CHECK(expand_pattern("%h%r", {.rank = 4, .host = "a%r%"}) == "a%r%4");
}

TEST_CASE("rank pattern: what is none is refused with the reason", "[launch]") {
  CHECK_FALSE(why_no_pattern("[%r] "));
  CHECK_FALSE(why_no_pattern("%r%R%l%n%w%h%j%g%s%%"));
  CHECK_FALSE(why_no_pattern("%%q"));
  REQUIRE(why_no_pattern("%q/%r"));
  CHECK(why_no_pattern("%q/%r")->starts_with("%q is not known; there are %r (rank), "));
  CHECK(why_no_pattern("%r%") == "it ends with a single %; write %% for a percent sign");
}

TEST_CASE("environment: a spare, and one in the place of a lost rank, have a number and no rank", "[launch]") {
  Scene scene;
  scene.spec.lifecycle.spares = 2;
  scene.spec.programs.front().environment = {"ROLE=worker"};
  scene.assignment = {.node_rank = 1, .nodes = 3, .first_rank = 4, .local_ranks = 4, .world_size = 12, .job_id = "job"};
  const auto of = [&](int place, bool joins) {
    const char* const inherited[] = {"RANK=3", "COL_SPARE=9", "COL_RANK=3", nullptr};
    Environment environment(
        inherited,
        {.spec = scene.spec, .assignment = scene.assignment, .directory = JobDirectory("job"), .host = "ada"});
    Found found;
    for (const char* entry : environment.of_rank(place, -1, joins)) {
      if (entry == nullptr) break;
      const std::string text = entry;
      found.emplace(text.substr(0, text.find('=')), text.substr(text.find('=') + 1));
    }
    return found;
  };
  const Found rank = of(2, false), again = of(2, true), spare = of(5, true);
  for (const char* const name : {"COL_RANK", "RANK", "ROLE_RANK"}) {
    CHECK(value(rank, name) == "6");
    CHECK(value(again, name) == "(unset)");
    CHECK(value(spare, name) == "(unset)");
  }
  CHECK(value(rank, "COL_SPARE") == "(unset)");
  CHECK(value(again, "COL_SPARE") == "6");
  CHECK(value(spare, "COL_SPARE") == "16");  // 12 ranks, then one of each of three nodes, then this node's second
  for (const Found& found : {rank, again, spare}) {
    CHECK(value(found, "COL_WORLD_SIZE") == "12");
    CHECK(value(found, "ROLE") == "worker");
    CHECK(value(found, "COL_EPOCH_FILE") == JobDirectory("job").epochs());
  }
  CHECK(value(again, "COL_LOCAL_RANK") == "2");
  CHECK(value(spare, "LOCAL_RANK") == "5");
  CHECK(value(Scene{}.of(0), "COL_EPOCH_FILE") == "(unset)");
}
