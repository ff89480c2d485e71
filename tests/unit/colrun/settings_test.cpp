// Options from variables and files, and who wins.
#include "colrun/settings.hpp"

#include <string>
#include <vector>

#include "colrun/job_options.hpp"
#include "parse.hpp"
#include "support/catch.hpp"

using namespace col::colrun;
using namespace col::test;
using Catch::Matchers::Contains;
using Words = std::vector<std::string>;

TEST_CASE("settings: the command line wins over variables, and these over the file", "[colrun]") {
  const File file("max-restarts = 1\nnp = 1\ngrace = 1\n");
  const World world{{"COLRUN_CONFIG=" + file.path(), "COLRUN_NP=2", "COLRUN_GRACE=2"}};
  const col::launch::JobSpec found = spec("--grace 3 a", world);
  CHECK(found.lifecycle.max_restarts == 1);
  CHECK(found.programs[0].ranks == 2);
  CHECK(found.lifecycle.grace == col::launch::Milliseconds(3'000));
  // The file of the command line takes the place of the variable's.
  const File other("max-restarts = 7\n");
  CHECK(spec("--config " + other.path() + " a", world).lifecycle.max_restarts == 7);
}

TEST_CASE("settings: every option but a few can be a variable and stand in a file, by all its long names", "[colrun]") {
  std::size_t settings = 0;
  Job job;
  const Rows rows = option_rows(job.spec, {});
  for (const OptionRow& row : rows) {
    if (!row.is_setting()) continue;
    ++settings;
    for (const std::string_view name : row.all_names()) {
      if (!name.starts_with("--")) continue;
      const std::string key(name.substr(2));
      CAPTURE(key);
      const std::string value = row.is_flag() ? "yes" : "value";
      const auto from_file = parse_config(rows, key + " = " + value, "f");
      REQUIRE(from_file.size() == 1);
      CHECK(from_file[0].row == &row);
      CHECK(from_file[0].given.text == (row.is_flag() ? "1" : "value"));
      const std::string variable = variable_of(key) + "=" + value;
      const char* environment[] = {variable.c_str(), nullptr};
      Surroundings surroundings;
      surroundings.environment = environment;
      const Settings found = collect_settings(Part{Values(rows), {}, {}}, surroundings);
      CHECK(found.warnings.empty());
      REQUIRE(found.values.all(row).size() == 1);
      CHECK(found.values.all(row)[0].said_as == variable_of(key));
    }
  }
  CHECK(settings == rows.size() - 5);
}

TEST_CASE("settings: flags are 1, 0, yes or no", "[colrun]") {
  for (const char* yes : {"1", "yes"}) CHECK(spec("a", {{std::string("COLRUN_MERGE=") + yes}}).output.merge);
  for (const char* no : {"0", "no"}) CHECK_FALSE(spec("a", {{std::string("COLRUN_MERGE=") + no}}).output.merge);
  CHECK(complaint("a", {{"COLRUN_MERGE=true"}}) == "COLRUN_MERGE takes 1, 0, yes or no, not 'true'");
  const File file("merge = yes\n");
  CHECK(spec("--config " + file.path() + " a").output.merge);
  CHECK_FALSE(spec("--config " + file.path() + " a", {{"COLRUN_MERGE=0"}}).output.merge);
  CHECK_FALSE(spec("--config " + file.path() + " --no-merge a").output.merge);
  CHECK(spec("--merge a", {{"COLRUN_MERGE=0"}}).output.merge);
}

TEST_CASE("settings: options that may be repeated add up", "[colrun]") {
  const File file("env = A=file\nenv = B=file\n");
  const World world{{"COLRUN_CONFIG=" + file.path(), "COLRUN_X=A=variable\nC=variable\n", "COLRUN_INJECT=kill:0@1s"}};
  const col::launch::JobSpec found = spec("-x A=line --inject kill:1@1s --inject kill:0@1s a", world);
  CHECK(found.environment.set == Words{"A=file", "B=file", "A=variable", "C=variable", "A=line"});
  CHECK(found.injections.size() == 2);  // the same one twice is one
}

TEST_CASE("settings: an unknown variable is a warning, an empty one is none at all", "[colrun]") {
  const Job found = job("a", {{"COLRUN_MAX_RESTART=3", "COLRUN_BOGUS=1", "COLRUN_=1", "COLRUN_NP=", "COLRUN=x",
                               "COLRUN_HELP=1", "COLRUN_max_restarts=3", "COLRUN_AGENT=1"}});
  REQUIRE(found.warnings.size() == 6);
  CHECK(
      found.warnings[0] ==
      "the variable COLRUN_MAX_RESTART is no option of colrun and has no effect; did you mean 'COLRUN_MAX_RESTARTS'?");
  CHECK(found.warnings[1] == "the variable COLRUN_BOGUS is no option of colrun and has no effect");
  CHECK(found.spec.lifecycle.max_restarts == 0);
  CHECK(found.spec.programs[0].ranks == 8);
}

TEST_CASE("settings: errors name who said it", "[colrun]") {
  CHECK(complaint("a", {{"COLRUN_NP=x"}}).starts_with("COLRUN_NP takes a whole number from 1 to 4096"));
  CHECK(complaint("a", {{"COLRUN_NP=2", "COLRUN_NPROC_PER_NODE=2"}}) ==
        "COLRUN_NPROC_PER_NODE was given twice (first by COLRUN_NP); give it once");
  const File file("\n# ranks\nnp = x\n");
  CHECK(complaint("--config " + file.path() + " a").starts_with(file.path() + ":3: np takes a whole number"));
  CHECK_THAT(complaint("--config /does/not/exist a"), Contains("cannot read '/does/not/exist': No such file"));
  CHECK_THAT(complaint("a", {{"COLRUN_CONFIG=/does/not/exist"}}), Contains("(named by COLRUN_CONFIG)"));
  const File binary(std::string("np = 2\0", 7)), large(std::string(std::size_t{2} << 20, '\n')), dos("np = 3\r\n");
  CHECK_THAT(complaint("--config / a"), Contains("cannot read '/': Is a directory"));
  CHECK_THAT(complaint("--config " + binary.path() + " a"), Contains("NUL byte"));
  CHECK_THAT(complaint("--config " + large.path() + " a"), Contains("larger than 1 MiB"));
  CHECK(spec("--config " + dos.path() + " a").programs[0].ranks == 3);
}

TEST_CASE("settings: what they say is a value, whatever it looks like", "[colrun]") {
  const File file("label-format = --np=\nssh = '-n=4 --x='\n");
  const col::launch::JobSpec found =
      spec("--config " + file.path() + " a", {{"COLRUN_ENV=A=--np\n\nB=", "COLRUN_RDZV_ID=-np"}});
  CHECK(found.output.label == "--np=");
  CHECK(found.nodes.ssh == Words{"-n=4", "--x="});
  CHECK(found.environment.set == Words{"A=--np", "B="});
  CHECK(found.nodes.rendezvous_id == "-np");
}

TEST_CASE("settings: lines of a configuration file", "[colrun]") {
  Job job;
  const Rows rows = option_rows(job.spec, {});
  const auto values_of = [&](const std::string& text) { return read_options(rows, {}, parse_config(rows, text, "f")); };
  const Values values =
      values_of("# comment\n\n  np=4  \r\n\tmax_restarts =\t2\nlabel-format = \"[%r] \"\noutput = 'file=run #1/%r'\n");
  CHECK(values.all("--np").at(0).text == "4");
  CHECK(values.all("--max-restarts").at(0).text == "2");
  CHECK(values.all("--label-format").at(0).text == "[%r] ");
  CHECK(values.all("--output").at(0).text == "file=run #1/%r");
  const auto wrong = [&](const std::string& text) -> std::string {
    try {
      values_of(text);
    } catch (const UsageError& error) {
      return error.what();
    }
    return {};
  };
  CHECK(wrong("max-restart = 3") == "f:1: unknown option 'max-restart'; did you mean 'max-restarts'?");
  CHECK(wrong("np = 2\nbogus = 3") == "f:2: unknown option 'bogus'");
  CHECK(wrong("config = x") == "f:1: config is for the command line only");
  CHECK(wrong("help = yes") == "f:1: help is for the command line only");
  CHECK(wrong("np") == "f:1: np has no value; write 'np = N'");
  CHECK(wrong("tee") == "f:1: tee has no value; write 'tee = yes'");
  CHECK(wrong("np =") == "f:1: np has no value; give it one, or remove the line");
  CHECK(wrong("np = '2") == "f:1: the quotes of np do not match; write one pair around all of it");
  CHECK(wrong("tee = maybe") == "f:1: tee takes 1, 0, yes or no, not 'maybe'");
  CHECK(wrong("np = 2\nnp = 3") == "f:2: np was given twice (first by f:1: np); give it once");
}

TEST_CASE("settings: of two ways to say the same, the one from the stronger source counts", "[colrun]") {
  const File hosts("x\ny\n");
  const std::string hostfile = "COLRUN_HOSTFILE=" + hosts.path();
  CHECK(spec("--host a,b,c p", {{hostfile}}).nodes.hosts.size() == 3);
  CHECK(spec("--nnodes 2 --rdzv-endpoint h:1 p", {{hostfile}}).nodes.hosts.empty());
  CHECK(spec("--standalone p", {{hostfile, "COLRUN_SCHEDULER=slurm"}}).nodes.hosts.empty());
  CHECK(spec("--hostfile " + hosts.path() + " p", {{"COLRUN_NNODES=4", "COLRUN_RDZV_ENDPOINT=h:1"}}).nodes.max_nodes ==
        2);
  CHECK(spec("--nnodes 2 --rdzv-endpoint h:1 p", {{"COLRUN_MASTER_ADDR=m", "COLRUN_MASTER_PORT=2"}}).nodes.endpoint ==
        "h:1");
  CHECK(spec("p", {{hostfile}}).nodes.hosts.size() == 2);
  CHECK_THAT(complaint("p", {{hostfile, "COLRUN_HOST=a"}}), Contains("give one of them"));
}
