#include <string>
#include <vector>

#include "parse.hpp"
#include "support/catch.hpp"

using namespace col::colrun;
using namespace col::test;
using Catch::Matchers::Contains;
using Words = std::vector<std::string>;

TEST_CASE("arguments: options end at the first argument that is none, or at --", "[colrun]") {
  CHECK(spec("-n 2 prog -n 3 --label").programs[0].command == Words{"prog", "-n", "3", "--label"});
  CHECK(spec("-n 2 -- -prog -- x").programs[0].command == Words{"-prog", "--", "x"});
  CHECK(spec("-l - x").programs[0].command == Words{"-", "x"});
}

TEST_CASE("arguments: -n may be written in all the ways that people are used to", "[colrun]") {
  for (const char* line : {"-n 3 p", "-n3 p", "-n=3 p", "-np 3 p", "-np=3 p", "--np 3 p", "--np=3 p", "-ln3 p",
                           "-ln 3 p", "--nproc-per-node 3 p", "--nproc_per_node=3 p", "--nproc_per_node 3 p"}) {
    CAPTURE(line);
    const col::launch::JobSpec found = spec(line);
    CHECK(found.programs.at(0).ranks == 3);
    CHECK(found.programs[0].command == Words{"p"});
    CHECK(found.output.label == (std::string(line).starts_with("-l") ? "[%r] " : ""));
  }
}

TEST_CASE("arguments: a lone colon begins the next program", "[colrun]") {
  const col::launch::JobSpec found = spec("-n 1 -l a x : -n 2 -x A=1 --env B=2 -- b y : c");
  REQUIRE(found.programs.size() == 3);
  CHECK(found.programs[0].command == Words{"a", "x"});
  CHECK(found.programs[0].environment.empty());
  CHECK(found.programs[1].command == Words{"b", "y"});
  CHECK(found.programs[1].ranks == 2);
  CHECK(found.programs[1].environment == Words{"A=1", "B=2"});
  CHECK(found.programs[2].command == Words{"c"});
  CHECK(found.programs[2].ranks == 1);
  CHECK(found.local_ranks() == 4);
  // Of several programs, each has one rank unless -n says otherwise; auto is for the first.
  CHECK(spec("a : b").local_ranks() == 2);
  CHECK(spec("-n auto a : b").programs[0].ranks == 8);
}

TEST_CASE("arguments: a colon that is an argument has a backslash", "[colrun]") {
  const col::launch::JobSpec found = spec("a \\: \\\\: x: :x \\x : b");
  REQUIRE(found.programs.size() == 2);
  CHECK(found.programs[0].command == Words{"a", ":", "\\:", "x:", ":x", "\\x"});
  CHECK(found.programs[1].command == Words{"b"});
}

TEST_CASE("arguments: a program must be there on both sides of a colon", "[colrun]") {
  CHECK_THAT(complaint("a :"), Contains("no program after ':'") && Contains("'\\:'"));
  CHECK_THAT(complaint("a : -n 2"), Contains("no program after ':'"));
  CHECK_THAT(complaint("a : : b"), Contains("no program after ':'"));
  CHECK_THAT(complaint(": b"), Contains("no program before ':'"));
  CHECK_THAT(complaint("-n 2 : b"), Contains("no program before ':'"));
  CHECK_THAT(complaint(Words{"a", ":", ""}), Contains("no program to run"));
}

TEST_CASE("arguments: without a program there is nothing to do", "[colrun]") {
  for (const char* line : {"", "-n 2", "--label", "--"}) {
    CAPTURE(line);
    CHECK_THAT(complaint(line), Contains("no program to run: colrun [options] program"));
  }
  CHECK_THAT(complaint(Words{""}), Contains("no program to run"));
}

TEST_CASE("arguments: options of the job stand before the first program", "[colrun]") {
  CHECK_THAT(complaint("a : --timeout 3 b"), Contains("--timeout is for the whole job: write it before the first"));
  CHECK_THAT(complaint("a : -l b"), Contains("-l is for the whole job"));
  CHECK_THAT(complaint("a : --no-tee b"), Contains("--no-tee is for the whole job"));
  CHECK_THAT(complaint("a : --help"), Contains("--help is for the whole job"));
  for (const char* count : {"auto", "cpu", "gpu"})
    CHECK_THAT(complaint(std::string("a : -n ") + count + " b"), Contains("is for the first program only"));
}

TEST_CASE("arguments: an unknown option is told with its nearest one", "[colrun]") {
  CHECK(complaint("--bogus a") == "unknown option '--bogus'");
  CHECK(complaint("-z a") == "unknown option '-z'");
  CHECK(complaint("-lz a") == "unknown option '-z'");
  CHECK(complaint("--timeuot 3 a") == "unknown option '--timeuot'; did you mean '--timeout'?");
  CHECK(complaint("--timeuot=3 a") == "unknown option '--timeuot'; did you mean '--timeout'?");
  CHECK(complaint("-timeout 3 a") == "unknown option '-timeout'; did you mean '--timeout'?");
  CHECK(complaint("--max_restart 3 a") == "unknown option '--max_restart'; did you mean '--max-restarts'?");
  CHECK(complaint("--no-n a").starts_with("unknown option '--no-n'"));
  CHECK(complaint("--no-help a").starts_with("unknown option '--no-help'"));
}

TEST_CASE("arguments: other launchers' options are taken, or answered", "[colrun]") {
  CHECK(spec("-host a,b p").nodes.hosts.size() == 2);
  CHECK(spec("--tag-output p").output.label == "[%r] ");
  CHECK(spec("--timestamp-output p").output.timestamps);
  CHECK(spec("--nnodes=2 --node_rank=1 --rdzv_id=x --rdzv_backend=c10d --rdzv_endpoint=h:1 p").nodes.node_rank == 1);
  CHECK_THAT(complaint("--oversubscribe p"), Contains("leave it out"));
  CHECK_THAT(complaint("--log-dir x p"), Contains("--output file="));
  CHECK_THAT(complaint("--log_dir=x p"), Contains("'--log_dir'"));
  CHECK_THAT(complaint("-m pkg"), Contains("python3 -m"));
  CHECK_THAT(complaint("-ppn 4 p"), Contains("-n N"));
}

TEST_CASE("arguments: values are where they are needed and nowhere else", "[colrun]") {
  CHECK(complaint("--np") == "--np needs a value: --np N");
  CHECK(complaint("-n") == "-n needs a value: -n N");
  CHECK(complaint("--np= a") == "--np needs a value: --np N");
  CHECK(complaint("-n= a") == "-n needs a value: -n N");
  CHECK(complaint(Words{"-n", "", "a"}) == "-n needs a value: -n N");
  CHECK(complaint("--nproc_per_node") == "--nproc_per_node needs a value: --nproc_per_node N");
  CHECK(complaint("--label=3 a") == "--label takes no value");
  CHECK(complaint("-l=3 a") == "-l takes no value");
  CHECK(complaint("--no-label=3 a") == "--no-label takes no value");
  CHECK(complaint("--help=3 a") == "--help takes no value");
  CHECK(complaint("-ql=3 a") == "-l takes no value");
  CHECK(complaint("-prepend-rank=3 a") == "-prepend-rank takes no value");
  CHECK(complaint("-n -l a") == "-n needs a value: -n N");
  CHECK(complaint("-np --np=3 a") == "-np needs a value: -np N");
  // A word that only looks like something else is a value, or belongs to the program, unchanged.
  CHECK(spec("-x A=-n=4 --ssh --x=y --label-format=-np=3 p --np= -n=3 -np").nodes.ssh == Words{"--x=y"});
  CHECK(spec("-xA=-n=4 p").environment.set == Words{"A=-n=4"});
  CHECK(spec("-x=A==b p").environment.set == Words{"A==b"});
  CHECK(spec("--label-format=-np=3 p").output.label == "-np=3");
  CHECK(spec("--label-format==3 p").output.label == "=3");
  CHECK(spec("p --np= -n=3 -np --nproc_per_node=1 -size").programs[0].command ==
        Words{"p", "--np=", "-n=3", "-np", "--nproc_per_node=1", "-size"});
  CHECK_THAT(complaint("-n -4 a"), Contains("not '-4'"));
  CHECK(complaint("-4 a") == "unknown option '-4'");
}

TEST_CASE("arguments: an option with one value is given once, a flag as often as one likes", "[colrun]") {
  CHECK(complaint("-n 2 -n 3 a") == "-n was given twice; give it once");
  CHECK(complaint("-n2 --np 3 a") == "--np was given twice (first by -n); give it once");
  CHECK(complaint("--nproc_per_node=2 -np 3 a") == "-np was given twice (first by --nproc_per_node); give it once");
  CHECK(complaint("a : -n 2 -n 3 b") == "-n was given twice; give it once");
  CHECK(complaint("--grace 2 --grace 2 a") == "--grace was given twice; give it once");
  CHECK(spec("-l -l a").output.label == "[%r] ");
  CHECK(spec("-l --no-label a").output.label.empty());
  CHECK(spec("-x A=1 -x A=2 a").environment.set == Words{"A=1", "A=2"});
}

TEST_CASE("arguments: the command line of a job repeats it", "[colrun]") {
  CHECK(spec("-ln2 -- a \\: : -n 3 b").command_line == Words{"colrun", "-ln2", "--", "a", "\\:", ":", "-n", "3", "b"});
  const File config("np = 3\nlabel = yes\ntee = no\nenv = A=1\ntimeout = 9\n");
  const World world{{"COLRUN_TIMEOUT=7", "COLRUN_ENV=A=1\nB=2", "COLRUN_MERGE=1"}};
  const Words again =
      spec("--config " + config.path() + " --no-merge --max-restarts=2 a --config x", world).command_line;
  CHECK(again == Words{"colrun", "--np=3", "--label", "--timeout=7", "--env=A=1", "--env=B=2", "--no-merge",
                       "--max-restarts=2", "a", "--config", "x"});
  CHECK(spec("--config=" + config.path() + " a").command_line ==
        Words{"colrun", "--np=3", "--label", "--timeout=9", "--env=A=1", "a"});
  // Once more with the same variables around it is the same job.
  const auto repeated = std::get<Job>(request(Words(again.begin() + 1, again.end()), world)).spec;
  CHECK(repeated.environment.set == Words{"A=1", "B=2"});
  CHECK(repeated.programs[0].ranks == 3);
  CHECK_FALSE(repeated.output.merge);
}

TEST_CASE("arguments: the agent of another colrun takes nothing else", "[colrun]") {
  CHECK(std::holds_alternative<Agent>(request({"--agent"}, {{"COLRUN_NP=x"}})));
  CHECK_THAT(complaint("--agent a"), Contains("--agent takes nothing else"));
  CHECK_THAT(complaint("-n 2 --agent"), Contains("--agent takes nothing else"));
}

TEST_CASE("arguments: an error is one line, whatever was written", "[colrun]") {
  const std::string text = complaint(Words{"-n", "4\n\x1b[31mx", "a"});
  CHECK(text.find('\n') == std::string::npos);
  CHECK(text.find('\x1b') == std::string::npos);
}
