// What --help says, and that it fits; and that the manual page has the same options. (Completions read --help-all.)
#include "colrun/help.hpp"

#include <algorithm>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include "colrun/option_table.hpp"
#include "parse.hpp"
#include "support/catch.hpp"

using namespace col::colrun;
using namespace col::test;

namespace {

std::string text_of(const std::string& line) {
  const Request found = request(words(line));
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

TEST_CASE("help: the everyday options fit a screen, all of them a page's width", "[colrun]") {
  for (const int ranks : {1, 128}) {
    const std::string everyday = help_text(HelpExtent::everyday, ranks);
    CHECK(std::count(everyday.begin(), everyday.end(), '\n') <= 50);
    CHECK(widest(everyday) <= 100);
    CHECK(widest(help_text(HelpExtent::all, ranks)) <= 100);
  }
}

TEST_CASE("help: it shows what the table says", "[colrun]") {
  const std::string everyday = help_text(HelpExtent::everyday, 3);
  const std::string all = help_text(HelpExtent::all, 3);
  for (const OptionRow& row : option_rows()) {
    const std::string names = "  " + std::string(row.names) + " ";
    CAPTURE(names);
    CHECK((everyday.find(names) != std::string::npos) == (row.shown == OptionRow::Shown::everyday));
    CHECK((all.find(names) != std::string::npos) == (row.shown != OptionRow::Shown::nowhere));
  }
  CHECK(everyday.find("default: auto (here 3)") != std::string::npos);
  CHECK(everyday.starts_with("Runs a program"));
  CHECK(everyday.find("\n\n\n") == std::string::npos);
  CHECK(all.find("COLRUN_CONFIG") != std::string::npos);
}

TEST_CASE("help: it is printed whatever else is wrong with the options' values", "[colrun]") {
  CHECK(text_of("--help") == help_text(HelpExtent::everyday, 8));
  CHECK(text_of("-h") == help_text(HelpExtent::everyday, 8));
  CHECK(text_of("-n x --help-all") == help_text(HelpExtent::all, 8));
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
  for (const OptionRow& row : option_rows()) {
    if (row.shown == OptionRow::Shown::nowhere) continue;
    for (const std::string_view name : row.all_names()) known.emplace(name);
  }
  CHECK(found == known);
}
