// What --help says, and that it fits; and that the manual page has the same options. (Completions read --help-all.)
#include <algorithm>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include "colrun/job_options.hpp"
#include "parse.hpp"
#include "support/catch.hpp"

using namespace col::colrun;
using namespace col::test;

namespace {

std::string text_of(const std::string& line, const World& world = {}) {
  const Request found = request(words(line), world);
  REQUIRE(std::holds_alternative<Text>(found));
  return std::get<Text>(found).text;
}

std::size_t widest(const std::string& text) {
  std::istringstream stream(text);
  std::size_t columns = 0;
  for (std::string line; std::getline(stream, line);) columns = std::max(columns, line.size());
  return columns;
}

}  // namespace

TEST_CASE("help: the everyday options fit 24 lines of 80 columns, all of them 80 columns", "[colrun]") {
  for (const int ranks : {1, 128}) {
    const std::string everyday = text_of("--help", {.processors = ranks});
    CHECK(std::count(everyday.begin(), everyday.end(), '\n') <= 24);
    CHECK(widest(everyday) <= 80);
    CHECK(widest(text_of("--help-all", {.processors = ranks})) <= 80);
  }
}

TEST_CASE("help: it shows what the table says", "[colrun]") {
  const std::string everyday = text_of("--help", {.processors = 3});
  const std::string all = text_of("--help-all", {.processors = 3});
  Job job;
  for (const OptionRow& row : option_rows(job.spec, {})) {
    const std::string names = "  " + std::string(row.names) + " ";
    CAPTURE(names);
    CHECK((everyday.find(names) != std::string::npos) == (!row.group.empty() && row.shown == HelpExtent::everyday));
    CHECK((all.find(names) != std::string::npos) == !row.group.empty());
  }
  CHECK(everyday.find("default: auto (here 3)") != std::string::npos);
  CHECK(everyday.starts_with("Runs a program"));
  CHECK(everyday.find("\n\n\n") == std::string::npos);
  CHECK(all.find("COLRUN_CONFIG") != std::string::npos);
}

TEST_CASE("help: it is printed whatever else is wrong with the options' values", "[colrun]") {
  CHECK(text_of("-h") == text_of("--help"));
  CHECK(text_of("-n x --help-all") == text_of("--help-all"));
  CHECK(text_of("--version").starts_with("colrun "));
  // Behind the program it is the program's.
  CHECK(spec("prog --help").programs[0].command.size() == 2);
}

TEST_CASE("manual page: it describes all options, and no others", "[colrun]") {
  std::ifstream page(COL_SOURCE_DIR "/docs/man/colrun.1");
  REQUIRE(page.good());
  std::set<std::string> found, known;
  const std::regex option("Fl (-?[A-Za-z][a-z-]*)");
  for (std::string line; std::getline(page, line);) {
    if (!line.starts_with(".It Fl ")) continue;
    for (std::sregex_iterator match(line.begin(), line.end(), option), end; match != end; ++match)
      found.insert("-" + (*match)[1].str());
  }
  Job job;
  for (const OptionRow& row : option_rows(job.spec, {})) {
    if (row.group.empty()) continue;
    for (const std::string_view name : row.all_names()) known.emplace(name);
  }
  CHECK(found == known);
}
