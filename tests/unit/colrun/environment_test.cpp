// Options about the ranks' variables.
#include <string>
#include <vector>

#include "parse.hpp"
#include "support/catch.hpp"

using namespace col::colrun;
using namespace col::test;
using Catch::Matchers::Contains;
using Words = std::vector<std::string>;

TEST_CASE("environment options: a variable without a value takes the caller's", "[colrun]") {
  const World world{{"A=1", "AB=2", "EMPTY=", "C=x=y"}};
  CHECK(spec("-x A --env EMPTY -x C -x D=4 -x E= p", world).environment.set ==
        Words{"A=1", "EMPTY=", "C=x=y", "D=4", "E="});
  CHECK(complaint("-x B p", world) == "-x B: the variable is not set here; write -x B=VALUE");
  CHECK(spec("a : -x A b", world).programs[1].environment == Words{"A=1"});
  CHECK_THAT(complaint("a : -x B b", world), Contains("-x B: the variable is not set here"));
}

TEST_CASE("environment options: files come before -x, and what is said later counts", "[colrun]") {
  const File one("A=file\nB='b b'\n");
  const File two("C=3\n");
  CHECK(spec("-x A=line -u --env-file " + one.path() + " --env-file " + two.path() + " p").environment.set ==
        Words{"PYTHONUNBUFFERED=1", "A=file", "B=b b", "C=3", "A=line"});
  // A file on the command line wins over -x of the environment.
  CHECK(spec("--env-file " + one.path() + " p", {{"COLRUN_ENV=A=variable"}}).environment.set ==
        Words{"A=variable", "A=file", "B=b b"});
  const File bad("A=1\nnonsense\n");
  CHECK_THAT(complaint("--env-file " + bad.path() + " p"), Contains(bad.path() + ":2: 'nonsense' is no variable"));
  CHECK_THAT(complaint("--env-file /does/not/exist p"), Contains("cannot read '/does/not/exist'"));
}

TEST_CASE("environment options: who a rank is, colrun alone says", "[colrun]") {
  for (const char* name : {"COL_RANK", "RANK", "WORLD_SIZE", "LOCAL_RANK", "COL_JOB_ID"}) {
    CAPTURE(name);
    CHECK_THAT(complaint(Words{"-x", std::string(name) + "=1", "p"}),
               Contains("colrun sets " + std::string(name) + " itself"));
    CHECK_THAT(complaint(Words{"--rank-env", std::string(name) + "=%r", "p"}), Contains("itself"));
  }
  const File file("RANK=1\n");
  CHECK_THAT(complaint("--env-file " + file.path() + " p"), Contains("colrun sets RANK itself"));
  CHECK_THAT(complaint("-x COL_STORE=file:///x p"), Contains("colrun sets COL_STORE itself"));
  CHECK_THAT(complaint(Words{"-x", "=1", "p"}), Contains("-x takes NAME=VALUE"));
  CHECK_THAT(complaint(Words{"-x", "A B=1", "p"}), Contains("'A B' is no name of a variable"));
}

TEST_CASE("environment options: variables are removed by name or by how they begin", "[colrun]") {
  CHECK(spec("--env-remove A --env-remove B* --env-remove * p").environment.remove == Words{"A", "B*", "*"});
  for (const char* wrong : {"A=1", "*A", "A*B", "A**"}) {
    CAPTURE(wrong);
    CHECK_THAT(complaint(Words{"--env-remove", wrong, "p"}),
               Contains("--env-remove takes the name of a variable, or NAME*"));
  }
}

TEST_CASE("environment options: variables that differ from rank to rank", "[colrun]") {
  CHECK(spec("--rank-env CORE=%l --rank-env X=%%s p").environment.per_rank == Words{"CORE=%l", "X=%%s"});
  CHECK_THAT(complaint("--rank-env CORE p"), Contains("--rank-env takes NAME=PATTERN, such as CORE=%l, not 'CORE'"));
  CHECK_THAT(complaint("--rank-env A=%q p"), Contains("--rank-env 'A=%q': "));
  CHECK_THAT(complaint("--rank-env A=%s p"), Contains("%s is for names of files"));
  CHECK(spec("--compat mpi p").environment.mpi_names);
  CHECK(complaint("--compat pmi p") == "--compat takes mpi, not 'pmi'");
}
