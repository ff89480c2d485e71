// That completions and the manual page know the options that the parser knows, and no others.
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include "colrun/option_table.hpp"
#include "support/catch.hpp"

using namespace col::colrun;
using Names = std::set<std::string>;

namespace {

std::string read(const std::string& path) {
  std::ifstream file(COL_SOURCE_DIR "/" + path);
  CAPTURE(path);
  REQUIRE(file.good());
  return {std::istreambuf_iterator<char>(file), {}};
}

template <class Which>
Names names_of(Which which) {
  Names names;
  for (const OptionRow& row : option_rows()) {
    if (row.shown == OptionRow::Shown::nowhere || !which(row)) continue;
    for (const std::string_view name : row.all_names()) names.emplace(name);
  }
  return names;
}

// The words between "NAME='" and the next quote.
Names words_of(const std::string& script, const std::string& name) {
  const std::size_t begin = script.find(name + "='");
  REQUIRE(begin != std::string::npos);
  const std::size_t start = begin + name.size() + 2;
  std::istringstream words(script.substr(start, script.find('\'', start) - start));
  Names found;
  for (std::string word; words >> word;) found.insert(word);
  return found;
}

// The first group of each match.
Names matches(const std::string& text, const char* pattern, const std::string& prefix) {
  const std::regex expression(pattern);
  Names found;
  for (std::sregex_iterator match(text.begin(), text.end(), expression), end; match != end; ++match)
    found.insert(prefix + (*match)[1].str());
  return found;
}

}  // namespace

TEST_CASE("completions: bash knows all options, and which of them take a value", "[colrun]") {
  const std::string script = read("src/tools/colrun/completions/colrun.bash");
  CHECK(words_of(script, "_colrun_flags") == names_of([](const OptionRow& row) { return row.is_flag(); }));
  CHECK(words_of(script, "_colrun_valued") == names_of([](const OptionRow& row) { return !row.is_flag(); }));
}

TEST_CASE("completions: zsh knows all options, and which of them take a value", "[colrun]") {
  const std::string script = read("src/tools/colrun/completions/_colrun");
  // In a specification an option is followed by what it takes: --np=, -n+, --tee[text].
  const auto long_valued = [](const OptionRow& row) { return !row.is_flag(); };
  Names valued = matches(script, "(--[a-z][a-z-]*)=", "");
  valued.merge(matches(script, "[{,](-[A-Za-z])\\+", ""));
  CHECK(valued == names_of(long_valued));
  Names flags = matches(script, "'(?:\\([^)]*\\))?(--[a-z][a-z-]*)\\[", "");
  flags.merge(matches(script, "[{,](--?[A-Za-z][a-z-]*)[,}](?![^\\n]*=\\})", ""));
  flags.merge(matches(script, "\\{-[a-z],(--[a-z-]+)\\}", ""));
  CHECK(flags == names_of([](const OptionRow& row) { return row.is_flag(); }));
}

TEST_CASE("manual page: it describes all options, and no others", "[colrun]") {
  const std::string page = read("docs/man/colrun.1");
  std::istringstream lines(page);
  Names found;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(".It Fl ")) found.merge(matches(line, "Fl (-?[A-Za-z][a-z-]*)", "-"));
  }
  CHECK(found == names_of([](const OptionRow&) { return true; }));
}
