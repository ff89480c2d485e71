#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cerrno>
#include <fstream>
#include <map>
#include <optional>
#include <string>

#include "launch/job/assignment.hpp"
#include "launch/job/launch_error.hpp"
#include "launch/nodes/endpoint.hpp"
#include "launch/nodes/rendezvous.hpp"
#include "net/address.hpp"
#include "net/listener.hpp"
#include "support/catch.hpp"
#include "support/free_port.hpp"
#include "support/temp_dir.hpp"
#include "unit/launch/fake_files.hpp"

using namespace col::launch;
namespace net = col::net;
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

TEST_CASE("endpoint: host and port in every form", "[launch]") {
  struct Case {
    const char* text;
    const char* host;
    int port;
  };
  for (const Case& one : {Case{"ada", "ada", 29400}, Case{"ada:1", "ada", 1}, Case{"10.0.0.1:65535", "10.0.0.1", 65535},
                          Case{"[fd00::1]:77", "fd00::1", 77}, Case{"[fd00::1]", "fd00::1", 29400},
                          Case{"fd00::1", "fd00::1", 29400}, Case{"::1", "::1", 29400}}) {
    INFO(one.text);
    const Endpoint endpoint = parse_endpoint(one.text);
    CHECK(endpoint.host == one.host);
    CHECK(endpoint.port == one.port);
    CHECK(parse_endpoint(endpoint.text()).text() == endpoint.text());
  }
}

TEST_CASE("endpoint: what is none is refused", "[launch]") {
  for (const char* text : {"", ":1", "ada:", "ada:0", "ada:65536", "ada:-1", "ada:x", "ada:1x", "[]", "[]:1",
                           "[fd00::1", "[::1]x", "[::1]:", "ada: 1"}) {
    INFO("'" << text << "'");
    CHECK_THAT(col::test::refusal_of(2, [&] { parse_endpoint(text); }), Catch::Contains("write host:port"));
  }
}

TEST_CASE("endpoint: this host is known by its names and addresses", "[launch]") {
  for (const char* name : {"localhost", "127.0.0.1", "127.1.2.3"}) CHECK(is_this_host(name));
  CHECK(is_this_host(host_name()));
  CHECK_FALSE(is_this_host("198.51.100.1"));  // for documentation: nobody has it
  CHECK_FALSE(host_name().empty());
  for (const std::string& address : own_addresses()) CHECK(is_this_host(address));
}

TEST_CASE("endpoint: who listens can be connected to, and a taken port is told", "[launch]") {
  const net::Listener listener = net::listen_on({""}, 0);
  REQUIRE(listener.sockets.size() == 1);
  REQUIRE(listener.port > 0);
  CHECK(net::listen_on({""}, listener.port).error == EADDRINUSE);
  const Connection connection = connect_to({"127.0.0.1", listener.port}, std::chrono::seconds(10));
  REQUIRE(connection.socket);
  CHECK(connection.peer_address == "127.0.0.1");
  pollfd waiting{listener.sockets.front().get(), POLLIN, 0};
  REQUIRE(::poll(&waiting, 1, 10'000) == 1);
  const col::tools::UniqueFd accepted(::accept(listener.sockets.front().get(), nullptr, nullptr));
  REQUIRE(accepted);
  CHECK(net::numeric_peer(accepted.get()) == "127.0.0.1");  // not ::ffff:127.0.0.1
}

TEST_CASE("endpoint: several addresses are listened at with one port, and no others", "[launch]") {
  const net::Listener listener = net::listen_on({"127.0.0.1", "127.0.0.2"}, 0);
  REQUIRE(listener.sockets.size() == 2);
  CHECK(connect_to({"127.0.0.1", listener.port}, std::chrono::seconds(10)).socket);
  CHECK(connect_to({"127.0.0.2", listener.port}, std::chrono::seconds(10)).socket);
  CHECK_FALSE(connect_to({"127.0.0.3", listener.port}, std::chrono::seconds(10)).socket);
  CHECK(net::listen_on({"127.0.0.3", "127.0.0.2"}, listener.port).sockets.empty());
  CHECK(net::listen_on({"198.51.100.1"}, 0).error == EADDRNOTAVAIL);
  const Endpoint free_one = pick_free_port();
  CHECK(is_this_host(free_one.host));
  // Another program may have been given it since: once, and not each time.
  bool is_free = net::listen_on({free_one.host}, free_one.port).sockets.size() == 1;
  for (int attempt = 1; attempt < 5 && !is_free; ++attempt) {
    const Endpoint next = pick_free_port();
    is_free = net::listen_on({next.host}, next.port).sockets.size() == 1;
  }
  CHECK(is_free);
}

TEST_CASE("endpoint: who does not listen is an error with the reason", "[launch]") {
  const Connection connection = connect_to({"127.0.0.1", col::test::free_port()}, std::chrono::seconds(10));
  CHECK_FALSE(connection.socket);
  CHECK_THAT(connection.error, Catch::Contains("cannot connect to 127.0.0.1:"));
}

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
    const auto find = [&] { find_node({.scheduler = scheduler}, in(with(kSlurm, "SLURM_STEP_NUM_TASKS", "6"))); };
    CHECK_THAT(col::test::refusal_of(2, find), Catch::Contains("--ntasks-per-node=1"));
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
