// Options about nodes and hosts.
#include <string>
#include <vector>

#include "parse.hpp"
#include "support/catch.hpp"

using namespace col::colrun;
using namespace col::test;
using namespace col::launch;
using Catch::Matchers::Contains;
using Words = std::vector<std::string>;

TEST_CASE("nodes: as torchrun users write them", "[colrun]") {
  const NodesSpec nodes =
      spec(
          "--nnodes=2 --node_rank=1 --rdzv-id=77 --rdzv_backend=static --rdzv-endpoint=[fe80::1]:29400 "
          "--rdzv-timeout 5m --nproc_per_node=4 p")
          .nodes;
  CHECK((nodes.min_nodes == 2 && nodes.max_nodes == 2 && nodes.node_rank == 1));
  CHECK(nodes.endpoint == "[fe80::1]:29400");
  CHECK(nodes.rendezvous_id == "77");
  CHECK(nodes.rendezvous_timeout == Milliseconds(300'000));
  const NodesSpec elastic = spec("--nnodes=1:4 --rdzv-backend c10d --rdzv-endpoint=h:29400 --max-restarts 3 p").nodes;
  CHECK((elastic.min_nodes == 1 && elastic.max_nodes == 4 && !elastic.node_rank));
  CHECK(spec("--nnodes 2 --master_addr=h --master_port=29500 p").nodes.endpoint == "h:29500");
  CHECK(spec("--nnodes 2 --master-addr=fe80::1 --master-port=29500 p").nodes.endpoint == "[fe80::1]:29500");
  // One node needs no place to meet, and torchrun's users give a port all the same.
  CHECK(spec("--nnodes=1 --node_rank=0 --master_port=29501 p").nodes.endpoint.empty());
  const NodesSpec one = spec("--rdzv-backend=c10d --rdzv-endpoint=localhost:0 p").nodes;
  CHECK((one.max_nodes == 1 && one.endpoint.empty()));
  CHECK(spec("--nnodes 2 --rdzv-endpoint=h p").nodes.endpoint == "h:29400");
  CHECK(spec("--standalone --nnodes=1 --nproc-per-node=2 p").nodes.scheduler == Scheduler::none);
  CHECK(complaint("--rdzv-backend etcd p") == "--rdzv-backend takes static or c10d, not 'etcd'");
  CHECK_THAT(complaint("--rdzv-endpoint h:x p"), Contains("--rdzv-endpoint takes host or host:port"));
  CHECK_THAT(complaint("--nnodes 0 p"), Contains("--nnodes takes a number of nodes, or MIN:MAX, not '0'"));
  CHECK_THAT(complaint("--node-rank x p"), Contains("--node-rank takes a whole number from 0"));
  CHECK_THAT(complaint("--master-port 0 p"), Contains("--master-port takes a whole number from 1 to 65535"));
  CHECK_THAT(complaint("--nnodes 2 --master-addr a/b --master-port 1 p"), Contains("--master-addr takes a host"));
}

TEST_CASE("nodes: --check-nodes starts a rank of colbench on each, in place of the job", "[colrun]") {
  const JobSpec check = spec("--check-nodes --host a:4,b -n 2 -x A=1 --timeout 9s --label --json r.json ./p -n 3");
  REQUIRE(check.programs.size() == 1);
  const Words& command = check.programs[0].command;
  REQUIRE(command.size() == 4);
  CHECK((command[0] == "colbench" || command[0].ends_with("/colbench")));
  CHECK(Words(command.begin() + 1, command.end()) == Words{"nodes", "--json", "r.json"});
  CHECK(check.programs[0].ranks == 1);
  CHECK((check.nodes.hosts.size() == 2 && !check.nodes.hosts[0].slots && check.nodes.max_nodes == 2));
  CHECK(check.environment.set == Words{"A=1"});
  CHECK(check.lifecycle.timeout == Milliseconds(9000));
  CHECK((check.output.label.empty() && check.inspect.json_path.empty()));
  // No job need follow; and what is wrong with the options is said all the same.
  CHECK(spec("--check-nodes --nnodes 2 --rdzv-endpoint h").programs[0].ranks == 1);
  CHECK_THAT(complaint("--check-nodes --nnodes 2"), Contains("needs a place where the nodes meet"));
}

TEST_CASE("nodes: schedulers by name", "[colrun]") {
  CHECK(spec("--scheduler auto p").nodes.scheduler == Scheduler::automatic);
  CHECK(spec("--scheduler none p").nodes.scheduler == Scheduler::none);
  CHECK(spec("--scheduler slurm p").nodes.scheduler == Scheduler::slurm);
  CHECK(spec("--scheduler k8s p").nodes.scheduler == Scheduler::kubernetes);
  CHECK(complaint("--scheduler pbs p") == "--scheduler takes auto, none, slurm or k8s, not 'pbs'");
}

TEST_CASE("nodes: hosts over ssh", "[colrun]") {
  const JobSpec found = std::get<Job>(request({"--host", "a:4,ada@b", "-n", "2", "--ssh", "ssh -p 2222", "p"})).spec;
  REQUIRE(found.nodes.hosts.size() == 2);
  CHECK((found.nodes.hosts[0].name == "a" && found.nodes.hosts[0].slots == 4));
  CHECK((found.nodes.hosts[1].name == "ada@b" && !found.nodes.hosts[1].slots));
  CHECK(found.nodes.ssh == Words{"ssh", "-p", "2222"});
  CHECK((found.nodes.min_nodes == 2 && found.nodes.max_nodes == 2));
  CHECK(found.programs[0].ranks == 2);
  const File file("a slots=3\nb:3\n");
  const JobSpec listed = spec("--hostfile " + file.path() + " p");
  CHECK((listed.nodes.hosts.size() == 2 && listed.programs[0].ranks == 3));
  // mpirun's users say the sum as well.
  CHECK(spec("--host a:4,b:4 -np 8 p").programs[0].ranks == 4);
  CHECK(spec("--host a,b --nnodes 2 p").nodes.max_nodes == 2);
  CHECK_THAT(complaint("--host a,,b p"), Contains("--host takes hosts such as a,ada@b:4"));
  CHECK_THAT(complaint("--host a,-b p"), Contains("--host takes hosts such as"));
  CHECK_THAT(complaint("--host a,b,a:2 p"), Contains("--host names a twice; write a:N"));
  CHECK_THAT(complaint(Words{"--ssh", "'ssh", "--host", "a", "p"}), Contains("--ssh takes a command such as"));
}
