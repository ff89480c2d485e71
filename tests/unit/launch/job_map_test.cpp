#include "launch/place/job_map.hpp"

#include <string>

#include "support/catch.hpp"

using namespace col::launch;

TEST_CASE("job map: one line for each rank, columns as needed", "[launch]") {
  const JobMap map{{{.node_rank = 0,
                     .host = "ada",
                     .ranks = {{.rank = 0, .local_rank = 0, .command = {"./train", "--lr", "0.1"}},
                               {.rank = 1, .local_rank = 1, .command = {"./train", "--name", "my run"}}}}}};
  CHECK(render_job_map(map, {}) ==
        "node 0 (ada): 2 ranks\n"
        "rank  command                  output\n"
        "--------------------------------------\n"
        "0     ./train --lr 0.1         console\n"
        "1     ./train --name 'my run'  console\n");
}

TEST_CASE("job map: several nodes, processors, GPUs and files", "[launch]") {
  const JobMap map{{{.node_rank = 0, .host = "ada", .ranks = {{.rank = 0, .local_rank = 0, .command = {"a"}}}},
                    {.node_rank = 1,
                     .host = "bob",
                     .ranks = {{.rank = 1,
                                .local_rank = 0,
                                .command = {"b", ""},
                                .cpus = {0, 1, 8},
                                .gpus = {"GPU-12345678-aaaa-bbbb", "MIG-7"},
                                .output = "run/1.out, run/1.err"},
                               {.rank = 2, .local_rank = 1, .command = {"b"}}}}}};
  CHECK(render_job_map(map, {}) ==
        "node 0 (ada): 1 rank\n"
        "rank  command  output\n"
        "----------------------\n"
        "0     a        console\n"
        "\n"
        "node 1 (bob): 2 ranks\n"
        "rank  local rank  command  CPUs       GPUs                output\n"
        "------------------------------------------------------------------------------\n"
        "1     0           b ''     0-1,8      GPU-12345678,MIG-7  run/1.out, run/1.err\n"
        "2     1           b        not bound                      console\n");
}

TEST_CASE("job map: long commands are shortened and control characters are harmless", "[launch]") {
  const std::string ascii =
      render_job_map({{{.host = "ada\x1b[2J", .ranks = {{.command = {std::string(100, 'x')}}}}}}, {});
  CHECK(ascii.find("ada\\x1b[2J") != std::string::npos);
  CHECK(ascii.find("\n0     " + std::string(45, 'x') + "...  console\n") != std::string::npos);
  const std::string unicode =
      render_job_map({{{.host = "ada", .ranks = {{.command = {std::string(100, 'x')}}}}}}, {.utf8 = true});
  CHECK(unicode.find("\n0     " + std::string(47, 'x') + "…  console\n") != std::string::npos);
}
