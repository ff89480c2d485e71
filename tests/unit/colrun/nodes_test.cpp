// Options about nodes and hosts.
#include <string>
#include <utility>
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
  CHECK(complaint("--scheduler sge p") == "--scheduler takes auto, none, slurm, k8s, pbs or lsf, not 'sge'");
}

TEST_CASE("nodes: the hosts of PBS and LSF", "[colrun]") {
  // In the order of the list, a line for each rank; a host's lines need not follow one another.
  const File lines("n2\nn1\n\nn2\nn1.cluster\nn2\n");
  const auto slots = [](const NodesSpec& nodes) {
    std::string text;
    for (const HostSpec& host : nodes.hosts)
      text += host.name + ":" + (host.slots ? std::to_string(*host.slots) : "-n") + " ";
    return text;
  };
  const auto in = [](Words environment) { return World{.environment = std::move(environment)}; };
  const World pbs = in({"PBS_NODEFILE=" + lines.path()});
  const JobSpec job = spec("--scheduler pbs p", pbs);
  CHECK(slots(job.nodes) == "n2:3 n1:1 n1.cluster:1 ");
  CHECK((job.nodes.max_nodes == 3 && job.programs[0].ranks == 3));
  const World lsf = in({"LSB_MCPU_HOSTS= a 4  b 2 ", "PBS_NODEFILE=/nowhere"});
  CHECK(slots(spec("--scheduler lsf p", lsf).nodes) == "a:4 b:2 ");
  CHECK(slots(spec("--scheduler lsf p", in({"LSB_MCPU_HOSTS=a 4", "LSB_DJOB_HOSTFILE=" + lines.path()})).nodes) ==
        "n2:3 n1:1 n1.cluster:1 ");
  // -n is for every host, and so are those of several programs.
  CHECK(slots(spec("-n 8 --scheduler pbs p", pbs).nodes) == "n2:-n n1:-n n1.cluster:-n ");
  CHECK(spec("-n 8 --scheduler pbs p", pbs).programs[0].ranks == 8);
  CHECK(slots(spec("--scheduler lsf p : -n 2 q", lsf).nodes) == "a:-n b:-n ");
  // Unasked, the list is not looked at: -n is for every node, and a script's colrun may want one.
  CHECK(spec("-n 2 p", pbs).nodes.hosts.empty());

  CHECK(complaint("--scheduler pbs p") ==
        "--scheduler pbs, but PBS_NODEFILE is not set; start colrun inside of a job (qsub), or name the hosts with "
        "--host");
  CHECK_THAT(complaint("--scheduler lsf p"), Contains("neither LSB_DJOB_HOSTFILE nor LSB_MCPU_HOSTS is set"));
  CHECK_THAT(complaint("--scheduler lsf p", in({"LSB_MCPU_HOSTS=a 4 b"})),
             Contains("LSB_MCPU_HOSTS='a 4 b' is no list"));
  CHECK_THAT(complaint("--scheduler lsf p", in({"LSB_MCPU_HOSTS=a b"})), Contains("is no list of hosts and numbers"));
  CHECK_THAT(complaint("--scheduler lsf p", in({"LSB_MCPU_HOSTS=-a 4"})), Contains("LSB_MCPU_HOSTS: '-a' is no host"));
  const File bad("n1\nn2 n3\n"), empty("\n");
  CHECK_THAT(complaint("--scheduler pbs p", in({"PBS_NODEFILE=" + bad.path()})), Contains(bad.path() + ":2: 'n2 n3'"));
  CHECK_THAT(complaint("--scheduler pbs p", in({"PBS_NODEFILE=" + empty.path()})), Contains("names no host"));
  CHECK_THAT(complaint("--scheduler pbs p", in({"PBS_NODEFILE=/no/such/file"})), Contains("/no/such/file"));
  CHECK(complaint("--scheduler pbs --host a p", pbs) ==
        "--scheduler pbs and --host both say which nodes there are; give one of them");
  CHECK_THAT(complaint("--scheduler pbs --nnodes 2 p", pbs), Contains("--scheduler pbs and --nnodes"));
  // What was typed wins over what a file or the environment says.
  const auto with = [&](const std::string& variable) { return in({"PBS_NODEFILE=" + lines.path(), variable}); };
  CHECK(slots(spec("--host a:1 p", with("COLRUN_SCHEDULER=pbs")).nodes) == "a:1 ");
  CHECK(slots(spec("--scheduler pbs p", with("COLRUN_HOST=a:1")).nodes) == "n2:3 n1:1 n1.cluster:1 ");
  CHECK(slots(spec("--scheduler pbs p", with("COLRUN_NNODES=7")).nodes) == "n2:3 n1:1 n1.cluster:1 ");
  CHECK(slots(spec("--scheduler none p", with("COLRUN_HOST=a:1")).nodes) == "a:1 ");
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
