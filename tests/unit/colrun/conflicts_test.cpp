// Options that are each right and do not go together.
#include <string>

#include "parse.hpp"
#include "support/catch.hpp"

using namespace col::colrun;
using namespace col::test;
using Catch::Matchers::Contains;

TEST_CASE("conflicts: output", "[colrun]") {
  CHECK_THAT(complaint("--tee p"), Contains("--tee needs --output"));
  CHECK_THAT(complaint("p", {{"COLRUN_TEE=1"}}), Contains("COLRUN_TEE needs --output"));
  CHECK_THAT(complaint("--output file=%r --ranks 0 p"), Contains("nothing goes there; add --tee"));
  CHECK_THAT(complaint("-n 2 --output file=log p"),
             Contains("several ranks would write to one file; put %r into its name"));
  CHECK_THAT(complaint("-n 2 --output file=%%r.%s p"), Contains("several ranks would write to one file"));
  CHECK_THAT(complaint("--host a,b --output file=%l p"), Contains("put %r (or %h and %l) into its name"));
  CHECK(complaint("--host a,b --output file=%h.%l p").empty());
  CHECK(complaint("--output file=%l p").empty());
  CHECK(complaint("-n 1 --output file=log p").empty());
  CHECK(complaint("--pty --merge p").empty());
}

TEST_CASE("conflicts: ranks outside of the world", "[colrun]") {
  CHECK_THAT(complaint("-n 4 --ranks 2-5 p"),
             Contains("--ranks names rank 4, but the job has 4 ranks (numbered from 0); name one of them"));
  CHECK_THAT(complaint("-n 1 --stdin 1 p"), Contains("--stdin names rank 1, but the job has 1 rank "));
  CHECK_THAT(complaint("-n 4 --debugger gdb --debug-ranks 4 p"), Contains("--debug-ranks names rank 4"));
  CHECK_THAT(complaint("-n 4 --inject kill:4 p"), Contains("--inject names rank 4"));
  CHECK(complaint("-n 2 a : -n 3 b").empty());
  CHECK(complaint("-n 2 --ranks 4 a : -n 3 b").empty());
  CHECK_THAT(complaint("-n 2 --ranks 5 a : -n 3 b"), Contains("the job has 5 ranks"));
  CHECK(complaint("--host a:2,b -n 3 --ranks 4 p").empty());
  CHECK_THAT(complaint("--host a:2,b -n 3 --ranks 5 p"), Contains("the job has 5 ranks"));
  // How many ranks other nodes have is not known here.
  CHECK(complaint("-n 2 --nnodes 2 --rdzv-endpoint h:1 --ranks 9 p").empty());
  CHECK(complaint("-n 2 --ranks 9 p", {{"SLURM_JOB_ID=1", "SLURM_STEP_ID=0"}}).empty());
}

TEST_CASE("conflicts: several nodes need a place to meet", "[colrun]") {
  CHECK_THAT(complaint("--nnodes 2 p"),
             Contains("--nnodes 2 needs a place where the nodes meet: add --rdzv-endpoint HOST:PORT") &&
                 Contains("--host A,B"));
  CHECK_THAT(complaint("--nnodes 1:2 p"), Contains("--nnodes 1:2 needs a place"));
  CHECK_THAT(complaint("p", {{"COLRUN_NNODES=2"}}), Contains("COLRUN_NNODES 2 needs a place"));
  CHECK_THAT(complaint("--nnodes 2 --master-addr h p"),
             Contains("--master-addr is half of a place to meet; add --master-port"));
  CHECK_THAT(complaint("--nnodes 2 --master-port 1 p"), Contains("add --master-addr"));
  CHECK_THAT(complaint("--rdzv-endpoint h:1 p"), Contains("not how many; add --nnodes N"));
  CHECK_THAT(complaint("--nnodes 2 --rdzv-endpoint h:0 p"), Contains("write one that is free on h"));
  // A scheduler says both.
  const World slurm{{"SLURM_JOB_ID=7", "SLURM_STEP_ID=0"}};
  const World kubernetes{{"JOB_COMPLETION_INDEX=0"}};
  CHECK(complaint("--nnodes 2 p", slurm).empty());
  CHECK(complaint("--rdzv-endpoint h:1 p", slurm).empty());
  CHECK(complaint("--nnodes 2 p", kubernetes).empty());
  CHECK(complaint("--nnodes 2 --scheduler slurm p").empty());
  CHECK_THAT(complaint("--nnodes 2 --scheduler none p", slurm), Contains("needs a place"));
  CHECK_THAT(complaint("--nnodes 2 p", {{"SLURM_JOB_ID=7"}}), Contains("needs a place"));  // sbatch, not srun
}

TEST_CASE("conflicts: the place to meet is said in one way", "[colrun]") {
  const File file("a\nb\n");
  CHECK_THAT(complaint("--host a --hostfile " + file.path() + " p"), Contains("--host and --hostfile both say"));
  CHECK_THAT(complaint("-H a -hostfile " + file.path() + " p"), Contains("-H and -hostfile both say"));
  CHECK_THAT(complaint("-H a,b --node_rank 1 p"), Contains("with -H, ") && Contains("leave --node_rank out"));
  CHECK_THAT(complaint("--host a,b p", {{"COLRUN_NNODES=3"}}), !Contains("do not agree"));
  CHECK_THAT(complaint("p", {{"COLRUN_HOST=a,b", "COLRUN_NNODES=3"}}), Contains("COLRUN_NNODES 3 and 2 hosts"));
  CHECK_THAT(complaint("--nnodes 2 --rdzv-endpoint h:1 --master-addr h --master-port 1 p"),
             Contains("--rdzv-endpoint and --master-addr both say"));
  CHECK_THAT(complaint("--host a,b --rdzv-endpoint h:1 p"),
             Contains("--host starts colrun on the other hosts, --rdzv-endpoint is for nodes on which somebody else"));
  CHECK_THAT(complaint("--hostfile " + file.path() + " --master-addr h p"), Contains("--hostfile starts colrun"));
  CHECK_THAT(complaint("--host a,b --node-rank 1 p"), Contains("leave --node-rank out"));
  CHECK_THAT(complaint("--host a,b --nnodes 3 p"), Contains("--nnodes 3 and 2 hosts do not agree"));
  CHECK_THAT(complaint("--host a,b --nnodes 1:2 p"), Contains("--nnodes 1:2 and 2 hosts do not agree"));
  CHECK_THAT(complaint("--standalone --nnodes 2 --rdzv-endpoint h:1 p"),
             Contains("--standalone and --nnodes do not go together"));
  CHECK_THAT(complaint("--standalone --host a p"), Contains("--standalone and --host do not go together"));
  CHECK_THAT(complaint("--standalone --scheduler slurm p"),
             Contains("--standalone and --scheduler do not go together"));
  CHECK(complaint("--standalone --rdzv-endpoint localhost:29400 p").empty());  // torchrun ignores it too
}

TEST_CASE("conflicts: the number of a node is below that of nodes", "[colrun]") {
  CHECK_THAT(complaint("--nnodes 2 --node-rank 2 --rdzv-endpoint h:1 p"), Contains("--node-rank 2 is none of 2 nodes"));
  CHECK_THAT(complaint("--node-rank 1 p"), Contains("--node-rank 1 is none of 1 node "));
  CHECK_THAT(complaint("--nnodes 1:2 --node-rank 1 --rdzv-endpoint h:1 p"), Contains("leave --node-rank out"));
  CHECK(complaint("--node-rank 1 p", {{"JOB_COMPLETION_INDEX=1"}}).empty());
}

TEST_CASE("conflicts: slots of hosts and -n", "[colrun]") {
  CHECK_THAT(complaint("--host a:4,b:4 -n 4 p"),
             Contains("-n 4 and the slots of the hosts (8 in all) do not agree; leave -n out"));
  CHECK_THAT(complaint("--host a:4,b:4 -n auto p"), Contains("do not agree"));
  CHECK_THAT(complaint("--host a:4,b p : q"), Contains("slots of hosts cannot be divided between several programs"));
  CHECK(complaint("--host a,b -n 2 p : -n 3 q").empty());
}

TEST_CASE("conflicts: the rest", "[colrun]") {
  CHECK_THAT(complaint("--debug-ranks 0 p"), Contains("--debug-ranks needs a debugger; add --debugger 'gdb --args'"));
  CHECK_THAT(complaint("--map-by numa p"), Contains("they get equal shares; add --bind-to core or --bind-to numa"));
  CHECK_THAT(complaint("--bind-to none --map-by numa p"), Contains("they are not bound; add --bind-to core"));
  CHECK_THAT(complaint("--bind-to list:0 --map-by numa p"), Contains("bound by a list"));
  CHECK_THAT(complaint("--keep-going --max-restarts 1 p"), Contains("give one of them"));
  CHECK(complaint("--keep-going --max-restarts 0 p").empty());
  CHECK_THAT(complaint("-n 4000 a : -n 97 b"),
             Contains("the programs have 4097 ranks together, and one node may have 4096"));
}

TEST_CASE("conflicts: jobs whose ranks go on in epochs", "[colrun]") {
  CHECK(complaint("-n 2 --spares 1 p").empty());
  CHECK(complaint("-n 2 --spares 1 --keep-going p").empty());
  CHECK(complaint("-n 4 --elastic 2:4 --max-restarts 3 --spares 1 p").empty());
  CHECK(complaint("-n 1 --spares 0 p").empty());
  CHECK_THAT(complaint("-n 1 --spares 1 p"), Contains("--spares needs a job of two ranks or more"));
  CHECK_THAT(complaint("-n 1 --elastic 1:2 p"), Contains("--elastic needs a job of two ranks or more"));
  CHECK_THAT(complaint("-n 2 --spares 1 --max-restarts 2 p"),
             Contains("--max-restarts starts all ranks again, and --spares lets them go on; for single ranks, add "
                      "--elastic MIN:MAX"));
  CHECK_THAT(complaint("-n 2 --spares 1 --compat mpi p"), Contains("--spares and --compat do not go together"));
  CHECK_THAT(complaint("-n 1 --spares 1 a : -n 2 b"), Contains("--spares is for one program"));
  CHECK_THAT(complaint("-n 4 --elastic 5:8 p"), Contains("--elastic 5:8 does not have the 4 ranks"));
  CHECK_THAT(complaint("-n 4 --elastic 2:3 p"), Contains("--elastic 2:3 does not have the 4 ranks"));
  CHECK_THAT(complaint("-n 4 --elastic 3:2 p"), Contains("--elastic takes MIN:MAX"));
  CHECK_THAT(complaint("-n 2 --elastic 1:2 --nnodes 2 --rdzv-endpoint h:1 p"), Contains("--elastic is for one node"));
  CHECK(complaint("-n 2 --spares 1 --nnodes 2 --rdzv-endpoint h:1 p").empty());
  CHECK_THAT(complaint("-n 4000 --spares 200 p"),
             Contains("4000 ranks and 200 spares are more than one node may have"));
}
