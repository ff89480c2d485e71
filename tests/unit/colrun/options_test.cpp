// Each group of options, as it comes to the job.
#include "colrun/options.hpp"

#include <string>
#include <vector>

#include "parse.hpp"
#include "support/catch.hpp"

using namespace col::colrun;
using namespace col::test;
using namespace col::launch;
using Catch::Matchers::Contains;
using Words = std::vector<std::string>;

TEST_CASE("options: without any, the job is what it is by default", "[colrun]") {
  const JobSpec found = spec("prog x");
  CHECK(found.programs.size() == 1);
  CHECK(found.local_ranks() == 8);
  CHECK((found.output.label.empty() && found.output.file_pattern.empty() && found.output.console_ranks.empty()));
  CHECK((!found.output.timestamps && !found.output.tee && !found.output.merge && !found.output.pty));
  CHECK((found.input.to == InputSpec::To::rank && found.input.rank == 0));
  CHECK((!found.lifecycle.timeout && !found.lifecycle.start_timeout && !found.lifecycle.exit_timeout));
  CHECK((found.lifecycle.grace == Milliseconds(5'000) && found.lifecycle.term_grace == Milliseconds(25'000)));
  CHECK(found.environment.set.empty());
  CHECK(found.binding.to == BindingSpec::To::automatic);
  CHECK((found.nodes.max_nodes == 1 && found.nodes.scheduler == Scheduler::automatic));
  CHECK(found.nodes.ssh == Words{"ssh"});
  CHECK(found.injections.empty());
}

TEST_CASE("options: ranks are a number, or as many as there are processors or GPUs", "[colrun]") {
  CHECK(spec("-n 1 p").local_ranks() == 1);
  CHECK(spec("-n 4096 p").local_ranks() == 4096);
  CHECK(spec("-n auto p").local_ranks() == 8);
  CHECK(spec("-n cpu p").local_ranks() == 8);
  CHECK(spec("-n gpu p").local_ranks() == 2);
  CHECK(spec("p", {{}, 9'999}).local_ranks() == 4096);
  CHECK_THAT(complaint("-n gpu p", {{}, 8, 0}), Contains("no GPU to be seen here; write a number"));
  for (const char* text : {"0", "x", "-1", "4097", "99999999999999999999", "1.5", "4x", "Auto"}) {
    CAPTURE(text);
    CHECK(complaint(std::string("-n ") + text + " p") ==
          std::string("-n takes a whole number from 1 to 4096, auto, cpu or gpu, not '") + text + "'");
  }
}

TEST_CASE("options: binding", "[colrun]") {
  CHECK(spec("p").binding.to == BindingSpec::To::automatic);
  CHECK(spec("--bind-to auto p").binding.to == BindingSpec::To::automatic);
  CHECK(spec("--bind-to none p").binding.to == BindingSpec::To::none);
  CHECK(spec("--bind-to core p").binding.to == BindingSpec::To::core);
  const BindingSpec numa = spec("--bind-to numa --map-by numa --gpus-per-rank 2 p").binding;
  CHECK((numa.to == BindingSpec::To::numa && numa.map_by == BindingSpec::MapBy::numa && numa.gpus_per_rank == 2));
  CHECK(spec("--bind-to core --map-by core p").binding.map_by == BindingSpec::MapBy::core);
  const BindingSpec lists = spec("--bind-to list:0-1;2,5 p").binding;
  CHECK(lists.to == BindingSpec::To::list);
  CHECK(lists.lists == std::vector<std::vector<int>>{{0, 1}, {2, 5}});
  CHECK(spec("--report-bindings p").inspect.report_bindings);
  CHECK_THAT(complaint("--bind-to sofa p"), Contains("--bind-to takes auto, none, core, numa or a list such as"));
  CHECK_THAT(complaint("--bind-to socket p"), Contains("colrun's words are numa"));
  CHECK_THAT(complaint("--bind-to list: p"), Contains("list: and processors for each rank"));
  CHECK_THAT(complaint("--bind-to core --map-by socket p"), Contains("--map-by takes core or numa, not 'socket'"));
  CHECK_THAT(complaint("--gpus-per-rank x p"), Contains("--gpus-per-rank takes a whole number from 0 to 64"));
}

TEST_CASE("options: output and input", "[colrun]") {
  const OutputSpec output =
      spec("-n 6 -l --timestamp --output file=run/%R.%s --tee --ranks 0,3-5 --merge --pty p").output;
  CHECK(output.label == "[%r] ");
  CHECK(output.timestamps);
  CHECK(output.file_pattern == "run/%R.%s");
  CHECK((output.tee && output.merge && output.pty));
  CHECK(output.console_ranks == std::vector<int>{0, 3, 4, 5});
  CHECK(spec("--label-format %h:%l p").output.label == "%h:%l");
  CHECK((!output.quiet && spec("-q p").output.quiet && spec("--quiet p").output.quiet));
  CHECK(spec("-l --label-format %h:%l p").output.label == "%h:%l");
  CHECK(spec("--stdin all p").input.to == InputSpec::To::all);
  CHECK(spec("--stdin none p").input.to == InputSpec::To::none);
  CHECK(spec("-n 4 --stdin 3 p").input.rank == 3);
  CHECK_THAT(complaint("--output run p"), Contains("--output takes file=PATTERN, such as file=run/%R.%s, not 'run'"));
  CHECK_THAT(complaint("--output file= p"), Contains("--output takes file=PATTERN"));
  CHECK_THAT(complaint("--output file=%q p"), Contains("--output 'file=%q': "));
  CHECK_THAT(complaint("--label-format %q p"), Contains("--label-format '%q': "));
  CHECK_THAT(complaint("--ranks 3-1 p"), Contains("--ranks takes ranks such as 0,3-5, not '3-1'"));
  CHECK_THAT(complaint("--stdin first p"), Contains("--stdin takes a rank, all or none, not 'first'"));
}

TEST_CASE("options: beginning and end", "[colrun]") {
  const LifecycleSpec life = spec(
                                 "--timeout 90 --start-timeout 500ms --exit-timeout 5m --grace 0 --term-grace 1h "
                                 "--max-restarts 3 --exit-policy max p")
                                 .lifecycle;
  CHECK(life.timeout == Milliseconds(90'000));
  CHECK(life.start_timeout == Milliseconds(500));
  CHECK(life.exit_timeout == Milliseconds(300'000));
  CHECK((life.grace == Milliseconds(0) && life.term_grace == Milliseconds(3'600'000)));
  CHECK((life.max_restarts == 3 && life.exit_policy == ExitPolicy::max && !life.keep_going));
  CHECK(spec("--keep-going --exit-policy rank0 p").lifecycle.keep_going);
  CHECK(spec("--exit-policy rank0 p").lifecycle.exit_policy == ExitPolicy::rank0);
  CHECK(spec("--exit-policy first p").lifecycle.exit_policy == ExitPolicy::first);
  for (const char* name : {"--timeout", "--start-timeout", "--exit-timeout", "--rdzv-timeout"}) {
    CAPTURE(name);
    CHECK(complaint(Words{name, "0", "p"}) ==
          std::string(name) + " takes a time such as 90, 90s, 500ms, 5m or 1h, more than 0, not '0'");
    CHECK_THAT(complaint(Words{name, "soon", "p"}), Contains("not 'soon'"));
  }
  for (const char* name : {"--grace", "--term-grace"})
    CHECK(complaint(Words{name, "x", "p"}) ==
          std::string(name) + " takes a time such as 90, 90s, 500ms, 5m or 1h, not 'x'");
  CHECK_THAT(complaint("--max-restarts -1 p"), Contains("--max-restarts takes a whole number from 0 to"));
  CHECK(complaint("--exit-policy last p") == "--exit-policy takes first, max or rank0, not 'last'");
}

TEST_CASE("options: inspection", "[colrun]") {
  const InspectSpec inspect = spec(
                                  "--dry-run --display map --print-env --report --json - --stacks-on-timeout "
                                  "--stacks-on-failure --report-bindings --report-hang 90s p")
                                  .inspect;
  CHECK((inspect.dry_run && inspect.display_map && inspect.print_environment && inspect.report));
  CHECK((inspect.stacks_on_timeout && inspect.stacks_on_failure && inspect.report_bindings));
  CHECK(inspect.json_path == "-");
  CHECK(inspect.report_hang == std::chrono::seconds(90));
  CHECK(inspect.trace_path.empty());
  CHECK(inspect.metrics_host.empty());
  CHECK(spec("--trace t.json p").inspect.trace_bytes == 256 << 20);
  CHECK(spec("--trace t.json --trace-limit 3K p").inspect.trace_bytes == 3072);
  for (const char* wrong : {"0", "K", "1KB", "-1", "1.5M", "much"})
    CHECK_THAT(complaint(Words{"--trace-limit", wrong, "p"}), Contains("a number of bytes such as 64M or 1G"));
  const auto metrics = [](const std::string& value) {
    const InspectSpec read = spec("--metrics " + value + " p").inspect;
    return read.metrics_host + " " + std::to_string(read.metrics_port);
  };
  CHECK(metrics(":9400") == "127.0.0.1 9400");
  CHECK(metrics("9400") == "127.0.0.1 9400");
  CHECK(metrics("*:0") == "* 0");
  CHECK(metrics("10.0.0.7:9400") == "10.0.0.7 9400");
  for (const char* wrong : {":", "*", ":x", ":65536", "*:", "10.0.0.7", "[::1]"})
    CHECK_THAT(complaint(Words{"--metrics", wrong, "p"}), Contains("--metrics takes :PORT, ADDRESS:PORT or *:PORT"));
  CHECK(complaint("--display bind p") == "--display takes map, not 'bind'");
}

TEST_CASE("options: a debugger is put before ranks, and who types means that one", "[colrun]") {
  const JobSpec one = std::get<Job>(request({"-n", "4", "--debugger", "gdb --args", "--debug-ranks", "2", "p"})).spec;
  CHECK(one.inspect.debugger == Words{"gdb", "--args"});
  CHECK(one.inspect.debug_ranks == std::vector<int>{2});
  CHECK(one.input.rank == 2);
  CHECK(spec("--debugger gdb p").inspect.debug_ranks == std::vector<int>{0});
  CHECK(spec("-n 4 --debugger gdb --debug-ranks 1-2 p").input.rank == 0);
  CHECK(spec("-n 4 --debugger gdb --debug-ranks 1 --stdin 3 p").input.rank == 3);
  CHECK(spec("-n 4 --debugger gdb --debug-ranks 1 --stdin none p").input.to == InputSpec::To::none);
  CHECK_THAT(complaint(Words{"--debugger", "'gdb", "p"}), Contains("--debugger takes a command such as 'gdb --args'"));
  CHECK_THAT(complaint("--debugger gdb --debug-ranks x p"), Contains("--debug-ranks takes ranks such as 2 or 0,3-5"));
}

TEST_CASE("options: faults are injected in the order given", "[colrun]") {
  const auto injections = spec("-n 4 --inject kill:3@2s --inject stop:1@1s+5s --inject slow:1x4 p").injections;
  REQUIRE(injections.size() == 3);
  CHECK((injections[0].kind == Injection::Kind::kill && injections[0].rank == 3));
  CHECK((injections[1].kind == Injection::Kind::stop && injections[2].kind == Injection::Kind::slow));
  CHECK_THAT(complaint("--inject burn:1 p"), Contains("--inject takes kill:RANK@TIME, stop:RANK@TIME+TIME or slow:"));
}
