#include "launch/environment.hpp"

#include <map>
#include <string>
#include <vector>

#include "launch/job_directory.hpp"
#include "support/catch.hpp"

using col::launch::Environment;
using col::launch::JobDirectory;

namespace {

// As a program sees it: a name that stands twice would show.
std::multimap<std::string, std::string> variables(Environment& environment, int rank) {
  std::multimap<std::string, std::string> result;
  for (const char* entry : environment.of_rank(rank)) {
    if (entry == nullptr) break;
    const std::string text = entry;
    result.emplace(text.substr(0, text.find('=')), text.substr(text.find('=') + 1));
  }
  return result;
}

Environment make(const std::vector<const char*>& inherited, int ranks, int cpus) {
  return Environment(inherited.data(), ranks, cpus, 4711, "job", JobDirectory("job"));
}

}  // namespace

TEST_CASE("environment: what the launcher sets replaces what was there", "[launch]") {
  Environment environment = make({"RANK=1", "WORLD_SIZE=3", "COL_STORE=tcp://x:1", "HOME=/h", nullptr}, 4, 8);
  for (int rank = 0; rank < 4; ++rank) {
    const auto found = variables(environment, rank);
    for (const char* name : {"RANK", "WORLD_SIZE", "COL_STORE", "HOME", "COL_RANK"}) CHECK(found.count(name) == 1);
    CHECK(found.find("RANK")->second == std::to_string(rank));
    CHECK(found.find("WORLD_SIZE")->second == "4");
    CHECK(found.find("MASTER_PORT")->second == "4711");
    CHECK(found.find("COL_STORE")->second == "file://" + JobDirectory("job").store());
    CHECK(found.find("COL_ERROR_FILE")->second == JobDirectory("job").error_file(rank));
    CHECK(found.find("HOME")->second == "/h");
  }
}

TEST_CASE("environment: an outer launcher's rank variables are left out", "[launch]") {
  Environment environment = make({"PMI_RANK=1", "PMIX_NAMESPACE=x", "OMPI_COMM_WORLD_RANK=1", "SLURM_PROCID=1",
                                  "SLURM_JOB_ID=7", "PMIXED=kept", nullptr},
                                 1, 1);
  const auto found = variables(environment, 0);
  for (const char* name : {"PMI_RANK", "PMIX_NAMESPACE", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID"}) {
    CHECK(found.count(name) == 0);
  }
  CHECK(found.count("SLURM_JOB_ID") == 1);
  CHECK(found.count("PMIXED") == 1);
}

TEST_CASE("environment: OMP_NUM_THREADS shares the CPUs out when it is unset", "[launch]") {
  Environment shared = make({nullptr}, 3, 8);
  CHECK(shared.omp_threads() == 2);
  CHECK(variables(shared, 0).find("OMP_NUM_THREADS")->second == "2");
  Environment crowded = make({nullptr}, 9, 8);
  CHECK(crowded.omp_threads() == 1);
  Environment set = make({"OMP_NUM_THREADS=6", nullptr}, 3, 8);
  CHECK(set.omp_threads() == 0);
  CHECK(variables(set, 0).find("OMP_NUM_THREADS")->second == "6");
}

TEST_CASE("environment: job ids differ and free ports are ports", "[launch]") {
  CHECK(col::launch::make_job_id() != col::launch::make_job_id());
  const int port = col::launch::pick_free_port();
  CHECK(port > 0);
  CHECK(port < 65536);
}
