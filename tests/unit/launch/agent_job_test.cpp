#include "launch/nodes/agent_job.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "json/json_fields.hpp"
#include "json/packed_json.hpp"
#include "launch/job/launch_error.hpp"
#include "launch/launch.hpp"
#include "launch/nodes/wire.hpp"
#include "launch/processes/events.hpp"
#include "support/catch.hpp"
#include "support/jumping_time.hpp"
#include "unit/launch/fake_files.hpp"

using namespace col::launch;
using nlohmann::json;

namespace {

JobSpec full_spec() {
  JobSpec spec;
  spec.programs = {{.command = {"./train", "--name", "a \"b\"\nc ä", ""}, .ranks = 2, .environment = {"A=1"}}};
  spec.output = {.label = "[%r] ",
                 .timestamps = true,
                 .file_pattern = "out/%r.%s",
                 .tee = true,
                 .console_ranks = {0, 3},
                 .merge = true,
                 .pty = true,
                 .out = Unfinished::shown,
                 .err = Unfinished::passed};
  spec.lifecycle.timeout = Milliseconds(90'000);
  spec.lifecycle.exit_timeout = Milliseconds(7'000);
  spec.lifecycle.grace = Milliseconds(11);
  spec.lifecycle.term_grace = Milliseconds(22);
  spec.lifecycle.max_restarts = 3;
  spec.lifecycle.keep_going = true;
  spec.environment = {.set = {"X=1"}, .remove = {"Y*"}, .per_rank = {"Z=%r"}, .mpi_names = true};
  spec.binding = {
      .to = BindingSpec::To::list, .lists = {{0, 1}, {2}}, .map_by = BindingSpec::MapBy::numa, .gpus_per_rank = 2};
  spec.inspect.report_bindings = true;
  spec.inspect.report_hang = std::chrono::seconds(60);
  spec.inspect.trace_path = "trace.json";
  spec.inspect.trace_bytes = 12345;
  spec.inspect.stacks_on_failure = true;
  spec.inspect.stacks_on_timeout = true;
  spec.inspect.debugger = {"gdb", "--args"};
  spec.inspect.debug_ranks = {1, 4};
  spec.injections = {
      {.kind = Injection::Kind::slow, .rank = 4, .at = Milliseconds(5), .duration = Milliseconds(6), .factor = 2.5}};
  spec.tool = "colbench";
  return spec;
}

std::string bytes_of(const JobSpec& spec, const HostSpec& host = {.name = "bob", .slots = 5, .node_rank = 3}) {
  Rendezvous meeting;
  meeting.id = "run";
  meeting.secret = "sesame";
  meeting.timeout = Milliseconds(12'000);
  for (const Program& program : spec.programs) meeting.program_ranks.push_back(program.ranks);
  return agent_job_bytes(spec, meeting, host, 4711);
}

}  // namespace

TEST_CASE("agent job: all that a launcher on another host needs arrives as it was", "[launch]") {
  const JobSpec spec = full_spec();
  const std::string bytes = bytes_of(spec);
  for (const std::size_t begun : {std::size_t{0}, std::size_t{5}, bytes.find('\n') + 3, bytes.size() - 1})
    CHECK_FALSE(agent_job_size(std::string_view(bytes).substr(0, begun)));
  CHECK(agent_job_size(bytes + "the ranks' input") == bytes.size());
  const AgentJob job = parse_agent_job(bytes);
  // All that is in the lists of fields, which have all members but those that stay.
  JobSpec expected = spec;
  expected.programs[0].ranks = 5;
  expected.output.joined = true;
  CHECK(col::core::json_line(job.spec) == col::core::json_line(expected));
  CHECK(job.spec.lifecycle.timeout == Milliseconds(90'000));
  CHECK(job.spec.inspect.debugger == spec.inspect.debugger);
  CHECK(job.spec.inspect.debug_ranks == spec.inspect.debug_ranks);
  CHECK(job.directory == std::filesystem::current_path().string());
  CHECK_FALSE(job.rendezvous.alone);
  CHECK_FALSE(job.rendezvous.reports);
  CHECK(job.rendezvous.id == "run");
  CHECK(job.rendezvous.secret == "sesame");
  CHECK(job.rendezvous.node_rank == 3);
  CHECK(job.rendezvous.timeout == Milliseconds(12'000));
  REQUIRE_FALSE(job.rendezvous.endpoints.empty());
  for (const Endpoint& endpoint : job.rendezvous.endpoints) CHECK(endpoint.port == 4711);
}

TEST_CASE("agent job: the lines of a single rank are joined with nobody's, on whatever host it is", "[launch]") {
  JobSpec spec = full_spec();
  spec.programs[0].ranks = 1;
  Rendezvous meeting;
  CHECK(has_one_rank(spec, meeting));
  const HostSpec far{.name = "bob", .slots = 1};
  meeting.remotes = {far};
  meeting.program_ranks = {1};
  CHECK_FALSE(has_one_rank(spec, meeting));
  CHECK(parse_agent_job(agent_job_bytes(spec, meeting, far, 4711)).spec.output.joined);
  spec.programs[0].ranks = 0;
  CHECK(has_one_rank(spec, meeting));
  CHECK_FALSE(parse_agent_job(agent_job_bytes(spec, meeting, far, 4711)).spec.output.joined);
  spec.programs[0].ranks = 1;
  CHECK_FALSE(has_one_rank(spec, {.alone = false, .max_nodes = 2}));  // one on each node, without ssh
}

TEST_CASE("agent job: with several programs each has its own number of ranks", "[launch]") {
  JobSpec spec = full_spec();
  spec.programs = {{.command = {"a"}, .ranks = 1}, {.command = {"b"}, .ranks = 3}};
  const AgentJob job = parse_agent_job(bytes_of(spec, {.name = "bob", .slots = 4}));
  REQUIRE(job.spec.programs.size() == 2);
  CHECK(job.spec.programs[0].ranks == 1);
  CHECK(job.spec.programs[1].ranks == 3);
}

TEST_CASE("agent job: arguments that are no UTF-8 arrive as they were", "[launch]") {
  JobSpec spec = full_spec();
  spec.programs[0].command = {"./train", "caf\xe9"};
  CHECK(parse_agent_job(bytes_of(spec)).spec.programs[0].command == spec.programs[0].command);
}

TEST_CASE("agent job: of the environment what col and its kin read goes along, no secrets and no ranks", "[launch]") {
  for (const char* name :
       {"COL_TEST_A", "COL_RDZV_TOKEN", "COL_STORE_TOKEN", "COL_RANK", "NCCL_TEST_A", "OTHER_TEST_A"})
    ::setenv(name, "x", 1);
  const AgentJob job = parse_agent_job(bytes_of(full_spec()));
  for (const char* name :
       {"COL_TEST_A", "COL_RDZV_TOKEN", "COL_STORE_TOKEN", "COL_RANK", "NCCL_TEST_A", "OTHER_TEST_A"})
    ::unsetenv(name);
  const auto has = [&](const std::string& entry) {
    return std::find(job.environment.begin(), job.environment.end(), entry) != job.environment.end();
  };
  CHECK(has("COL_TEST_A=x"));
  CHECK(has("NCCL_TEST_A=x"));
  CHECK_FALSE(has("OTHER_TEST_A=x"));
  CHECK_FALSE(has("COL_RDZV_TOKEN=x"));
  CHECK_FALSE(has("COL_STORE_TOKEN=x"));
  CHECK_FALSE(has("COL_RANK=x"));
}

TEST_CASE("agent job: what is no job is refused in one line", "[launch]") {
  const std::string bytes = bytes_of(full_spec());
  const std::string version = bytes.substr(0, bytes.find('\n') + 1);
  const auto job_of = [&](const json& job) { return version + frames::frame_of(col::core::packed(job)); };
  const json good = col::core::unpacked(std::string_view(bytes).substr(version.size() + frames::kHeadBytes), "the job");
  std::vector<std::string> texts = {"",
                                    "x\n",
                                    "[]\n",
                                    "3\n",
                                    "{}\n",
                                    "{\"version\":[]}\n",
                                    bytes.substr(0, 100),
                                    bytes + "x",
                                    version + "\x7f\x00\x00\x00"};
  for (const char* const part : {"", "/job", "/job/inspect"}) {
    const json::json_pointer place(part);
    for (const auto& [name, kept] : good.at(place).items()) {
      json without = good;
      without.at(place).erase(name);
      texts.push_back(job_of(without));
      json other = good;
      other.at(place)[name] = json::array({json::array()});
      texts.push_back(job_of(other));
    }
  }
  for (const auto& [where, value] :
       std::vector<std::pair<json::json_pointer, json>>{{"/job/programs"_json_pointer, json::array()},
                                                        {"/job/programs/0/ranks"_json_pointer, 0},
                                                        {"/job/programs/0/ranks"_json_pointer, kMaxRanks + 1},
                                                        {"/job/binding/to"_json_pointer, 99},
                                                        {"/job/binding/map_by"_json_pointer, -1},
                                                        {"/job/injections/0/kind"_json_pointer, 7},
                                                        {"/job/programs/0/command"_json_pointer, json::array()}}) {
    json wrong = good;
    wrong[where] = value;
    texts.push_back(job_of(wrong));
  }
  for (const std::string& text : texts) {
    INFO(text.substr(0, 200));
    const std::string why = col::test::refusal_of(125, [&] { parse_agent_job(text); });
    CHECK_FALSE(why.empty());
    CHECK(why.find('\n') == std::string::npos);
  }
}

TEST_CASE("agent job: another version of colrun is named, that which sent a line of JSON alone, too", "[launch]") {
  for (const char* line :
       {R"({"version":1})", R"({"directory":"/","version":6,"job":{}})", R"({"version":8,"new":1})"}) {
    const std::string why = col::test::refusal_of(125, [&] { (void)agent_job_size(line + std::string("\n")); });
    CHECK(why == "the hosts have different versions of colrun; install the same one");
  }
}

TEST_CASE("agent: does not wait without end for a job", "[launch]") {
  const PipeEnds pipe = make_input_pipe();
  const col::tools::UniqueFd before(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3));
  REQUIRE(::dup2(pipe.read.get(), STDIN_FILENO) == STDIN_FILENO);
  const col::test::JumpingTime time;
  std::string error;
  try {
    run_agent({});
  } catch (const LaunchError& failed) {
    error = failed.what();
  }
  ::dup2(before.get(), STDIN_FILENO);
  CHECK(error == "no job came on stdin within 60 s");
}
