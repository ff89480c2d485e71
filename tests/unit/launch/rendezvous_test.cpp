#include "launch/nodes/rendezvous.hpp"

#include <sys/stat.h>

#include <fstream>
#include <map>
#include <optional>
#include <string>

#include "launch/job/launch_error.hpp"
#include "support/catch.hpp"
#include "support/temp_dir.hpp"

using namespace col::launch;
using Variables = std::map<std::string, std::string>;

namespace {

Rendezvous plan(JobSpec& spec, const Variables& variables = {}) {
  return plan_rendezvous(spec, [&](const char* name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found != variables.end() ? std::optional(found->second) : std::nullopt;
  });
}

JobSpec one_program(int ranks) {
  return {.programs = {{.command = {"a"}, .ranks = ranks}}};
}

JobSpec two_nodes() {
  JobSpec spec = one_program(2);
  spec.nodes = {.min_nodes = 2, .max_nodes = 2, .endpoint = "198.51.100.1:7"};
  return spec;
}

int refusal(JobSpec spec, const Variables& variables = {}) {
  try {
    plan(spec, variables);
  } catch (const LaunchError& error) {
    return error.exit_code();
  }
  return 0;
}

}  // namespace

TEST_CASE("rendezvous: without other nodes there is none", "[launch]") {
  JobSpec spec = one_program(3);
  CHECK(plan(spec).alone);
  spec.nodes.hosts = {{.name = "localhost", .slots = 5}};
  CHECK(plan(spec).alone);
  CHECK(spec.local_ranks() == 5);
}

TEST_CASE("rendezvous: hosts are this one and others, in the order of the list", "[launch]") {
  JobSpec spec = one_program(3);
  spec.nodes.hosts = {
      {.name = "198.51.100.1"}, {.name = "localhost", .slots = 2}, {.name = "198.51.100.2", .slots = 4}};
  const Rendezvous meeting = plan(spec);
  CHECK_FALSE(meeting.alone);
  CHECK(spec.local_ranks() == 2);
  CHECK(meeting.node_rank == 1);
  CHECK(meeting.min_nodes == 3);
  CHECK(meeting.max_nodes == 3);
  REQUIRE(meeting.remotes.size() == 2);
  CHECK(meeting.remotes[0].name == "198.51.100.1");
  CHECK(meeting.remotes[0].slots == 3);
  CHECK(meeting.remotes[0].node_rank == 0);
  CHECK(meeting.remotes[1].slots == 4);
  CHECK(meeting.remotes[1].node_rank == 2);
  CHECK(meeting.secret.size() >= 16);
  JobSpec again = one_program(3);
  again.nodes.hosts = {{.name = "198.51.100.1"}, {.name = "198.51.100.2"}};
  CHECK(plan(again).secret != meeting.secret);
  CHECK(again.local_ranks() == 0);
}

TEST_CASE("rendezvous: a host that is named twice has the ranks of both", "[launch]") {
  JobSpec spec = one_program(3);
  spec.nodes.hosts = {{.name = "198.51.100.1"}, {.name = "198.51.100.2"}, {.name = "198.51.100.1", .slots = 2}};
  const Rendezvous meeting = plan(spec);
  REQUIRE(meeting.remotes.size() == 2);
  CHECK(meeting.remotes[0].slots == 5);
  CHECK(meeting.remotes[1].node_rank == 1);
  CHECK(meeting.max_nodes == 2);
  spec.nodes.hosts = {{.name = "198.51.100.1", .slots = kMaxRanks}, {.name = "198.51.100.1", .slots = 1}};
  CHECK(refusal(spec) == 2);
}

TEST_CASE("rendezvous: several programs have their own ranks on each host", "[launch]") {
  JobSpec spec{.programs = {{.command = {"a"}, .ranks = 1}, {.command = {"b"}, .ranks = 2}}};
  spec.nodes.hosts = {{.name = "198.51.100.1"}};
  const Rendezvous meeting = plan(spec);
  CHECK(remote_ranks(meeting, meeting.remotes.at(0), 0) == 1);
  CHECK(remote_ranks(meeting, meeting.remotes.at(0), 1) == 2);
  CHECK(spec.local_ranks() == 0);
  JobSpec numbered{.programs = {{.command = {"a"}, .ranks = 1}, {.command = {"b"}, .ranks = 2}}};
  numbered.nodes.hosts = {{.name = "198.51.100.1", .slots = 4}};
  CHECK(refusal(numbered) == 2);
}

TEST_CASE("rendezvous: an endpoint is needed, and node ranks that fit", "[launch]") {
  JobSpec spec = two_nodes();
  const Rendezvous meeting = plan(spec);
  REQUIRE(meeting.endpoints.size() == 1);
  CHECK(meeting.endpoints[0].text() == "198.51.100.1:7");
  CHECK(meeting.node_rank == -1);
  spec.nodes.node_rank = 2;
  CHECK(refusal(spec) == 2);
  spec.nodes.node_rank = 1;
  CHECK(plan(spec).node_rank == 1);
  spec.nodes.endpoint = "nonsense:port";
  CHECK(refusal(spec) == 2);
  spec.nodes.endpoint.clear();
  CHECK(refusal(spec) == 2);
  CHECK(plan(spec, {{"COL_RDZV_ENDPOINT", "198.51.100.9:8"}}).endpoints.at(0).port == 8);
}

TEST_CASE("rendezvous: a secret comes from the environment, or a file of one's own that nobody else can read",
          "[launch]") {
  col::test::TempDir directory;
  const std::string path = directory / "token";
  JobSpec spec = two_nodes();
  CHECK(plan(spec).secret.empty());
  CHECK(plan(spec, {{"COL_RDZV_TOKEN", "a b"}, {"COL_RDZV_TOKEN_FILE", path}}).secret == "a b");
  CHECK(refusal(spec, {{"COL_RDZV_TOKEN_FILE", path}}) == 125);
  std::ofstream(path) << "sesame\n\n";
  for (const mode_t mode : {0644, 0640, 0604, 0620, 0602, 0610}) {
    REQUIRE(::chmod(path.c_str(), mode) == 0);
    CHECK(refusal(spec, {{"COL_RDZV_TOKEN_FILE", path}}) == 125);
  }
  for (const mode_t mode : {0600, 0400}) {
    REQUIRE(::chmod(path.c_str(), mode) == 0);
    CHECK(plan(spec, {{"COL_RDZV_TOKEN_FILE", path}}).secret == "sesame");
  }
  REQUIRE(::chmod(path.c_str(), 0600) == 0);
  std::ofstream(path) << "\n";
  CHECK(refusal(spec, {{"COL_RDZV_TOKEN_FILE", path}}) == 125);
  CHECK(refusal(spec, {{"COL_RDZV_TOKEN_FILE", directory.path()}}) == 125);
}
