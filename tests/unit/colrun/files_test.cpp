// Files of hosts and variables, and how any of them is read.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "colrun/text_files.hpp"
#include "common/unique_fd.hpp"
#include "parse.hpp"
#include "support/catch.hpp"
#include "support/jumping_time.hpp"

using namespace col::colrun;
using namespace col::test;
using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;
using Words = std::vector<std::string>;

namespace {

template <class Parse>
std::string wrong(Parse parse) {
  try {
    parse();
  } catch (const UsageError& error) {
    return error.what();
  }
  return {};
}

}  // namespace

TEST_CASE("files: a hostfile has a host on each line", "[colrun]") {
  const auto hosts =
      parse_hostfile("# the cluster\na\nada@b slots=4 # the fast one\n\nc:2\r\n  [fe80::1]  slots=1\nd", "h");
  REQUIRE(hosts.size() == 5);
  CHECK((hosts[0].name == "a" && !hosts[0].slots));
  CHECK((hosts[1].name == "ada@b" && hosts[1].slots == 4));
  CHECK((hosts[2].name == "c" && hosts[2].slots == 2));
  CHECK((hosts[3].name == "fe80::1" && hosts[3].slots == 1));
  CHECK(hosts[4].name == "d");
}

TEST_CASE("files: what is no host is an error that names the line", "[colrun]") {
  const auto error = [](const std::string& text) { return wrong([&] { parse_hostfile(text, "h"); }); };
  CHECK(error("") == "h names no host; write one a line");
  CHECK(error("# nothing\n") == "h names no host; write one a line");
  CHECK_THAT(error("a\n-oProxyCommand=x\n"), Contains("h:2: '-oProxyCommand=x' is no host; write"));
  for (const char* word : {"slots=4", "max_slots=4", "=4", "host=a", ":4", "a:0", "a:", "a:4097", "a:x", "@a", "a@",
                           "a@b@c", "[]:4", "a,b", "'a", "::1"}) {
    CAPTURE(word);
    CHECK_THAT(error(std::string("a\n\n") + word),
               StartsWith(std::string("h:3: '") + word + "' is no host; write host, "));
  }
  CHECK_THAT(error("a slots=0"), Contains("h:1: slots= takes a whole number from 1 to 4096, not '0'"));
  CHECK_THAT(error("a max_slots=3"), Contains("h:1: 'max_slots=3' is not known here"));
  CHECK_THAT(error("a:2 slots=3"), Contains("'slots=3' is not known here; a host may be followed by slots=N, once"));
  CHECK_THAT(error("a\nb\na slots=2"), Contains("h:3: a was there before; write 'slots=N'"));
}

TEST_CASE("files: variables may be quoted and exported, and nothing is expanded", "[colrun]") {
  CHECK(parse_env_file(
            "# comment\nA=1\nexport B=two words\nC='a \\n $HOME'\nD=\"x \\\"y\\\" \\\\ \\n\\t \\$z\"\nE=\nF=a#b 'c'\n",
            "f") == Words{"A=1", "B=two words", "C=a \\n $HOME", "D=x \"y\" \\ \n\t \\$z", "E=", "F=a#b 'c'"});
  const auto error = [](const std::string& text) { return wrong([&] { parse_env_file(text, "f"); }); };
  CHECK(error("A=1\nB") == "f:2: 'B' is no variable; write NAME=value");
  CHECK(error("=1") == "f:1: '=1' is no variable; write NAME=value");
  CHECK(error("A B=1") == "f:1: 'A B=1' is no variable; write NAME=value");
  CHECK_THAT(error("A='x"), Contains("f:1: the quotes of A do not match"));
  CHECK_THAT(error("A=\"x\" y"), Contains("f:1: the quotes of A do not match"));
}

TEST_CASE("files: what cannot be read is an error that says why", "[colrun]") {
  const auto error = [](const std::string& path) { return wrong([&] { read_text(path); }); };
  CHECK(error("/does/not/exist") == "cannot read '/does/not/exist': No such file or directory; check the path");
  CHECK(error("/") == "cannot read '/': Is a directory; name a file in it");
  const File nul(std::string("a\0b", 3));
  CHECK_THAT(error(nul.path()), Contains("NUL byte") && Contains("is it the right file?"));
  const File large(std::string((std::size_t{1} << 20) + 1, 'x'));
  CHECK_THAT(error(large.path()), Contains("larger than 1 MiB"));
  const File most(std::string(std::size_t{1} << 20, 'x'));
  CHECK(read_text(most.path()).size() == std::size_t{1} << 20);
}

TEST_CASE("files: a pipe is read to its end, as a shell's <(...)", "[colrun]") {
  int ends[2];
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  const col::tools::UniqueFd read_end(ends[0]);
  col::tools::UniqueFd write_end(ends[1]);
  REQUIRE(::write(write_end.get(), "A=1\n", 4) == 4);
  {
    const JumpingTime time;
    CHECK(
        wrong([&] { read_text("/dev/fd/" + std::to_string(read_end.get())); }).ends_with("': no end of it after 10 s"));
  }
  REQUIRE(::write(write_end.get(), "A=1\n", 4) == 4);
  write_end.reset();
  CHECK(read_text("/dev/fd/" + std::to_string(read_end.get())) == "A=1\n");
}

TEST_CASE("files: lines are trimmed and numbered, comments are left out", "[colrun]") {
  std::vector<std::pair<int, std::string>> lines;
  each_line("a\n\n # x\n\tb \r\n#\nc#d", [&](int number, std::string_view line) { lines.emplace_back(number, line); });
  CHECK(lines == std::vector<std::pair<int, std::string>>{{1, "a"}, {4, "b"}, {6, "c#d"}});
}
