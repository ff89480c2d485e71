// colbench draw, as far as files.
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <col/plan.hpp>

#include "colbench/command.hpp"
#include "common/command_line.hpp"
#include "support/catch.hpp"
#include "support/temp_dir.hpp"

using namespace col;
using namespace col::colbench;

namespace {

int draw(const std::vector<std::string>& arguments) {
  return run_draw({.arguments = arguments, .screen = {}, .measure = {}});
}

std::string draw_error(const std::vector<std::string>& arguments) {
  try {
    draw(arguments);
  } catch (const tools::UsageError& error) {
    return error.what();
  }
  return {};
}

std::string content(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

}  // namespace

TEST_CASE("draw: mst on 8 ranks has its 14 messages in the picture", "[colbench]") {
  const test::TempDir directory;
  const std::string path = directory.path() + "/mst.svg";
  CHECK(draw({"--algorithm", "mst", "-n", "8", "-o", path}) == 0);
  const std::string svg = content(path);
  CHECK(svg.starts_with("<svg"));
  CHECK(svg.find("allreduce by mst") != std::string::npos);
  CHECK(count_of(svg, "→") == 14);
}

TEST_CASE("draw: a plan as JSON is read back, and drawn as the plan that it is", "[colbench]") {
  const test::TempDir directory;
  const std::string json = directory.path() + "/tree.json";
  const std::string text = directory.path() + "/tree.txt", again = directory.path() + "/again.txt";
  const std::vector<std::string> what = {"broadcast", "--algorithm", "knomial:radix=3", "-n", "9",
                                         "--root",    "2",           "--count",         "5",  "-o"};
  const auto to = [&](const std::string& path) {
    std::vector<std::string> arguments = what;
    arguments.push_back(path);
    return draw(arguments);
  };
  CHECK(to(json) == 0);
  CHECK(to(text) == 0);
  const PlanFile file = PlanFile::load(json);
  CHECK(file.collective() == Collective::broadcast);
  CHECK(file.ranks() == 9);
  CHECK(draw({"--algorithm", "file:" + json, "--root", "2", "--count", "5", "-o", again}) == 0);
  CHECK(content(again) == content(text));
}

TEST_CASE("draw: a plan that is wrong is drawn, and said to be wrong", "[colbench]") {
  const test::TempDir directory;
  const std::string json = directory.path() + "/wrong.json";
  // Rank 1 never gets the sum.
  std::ofstream(json) << R"({"version": 1, "name": "half", "collective": "allreduce", "ranks": 2, "unit": "chunks",
    "plans": [[[{"recv": ["scratch", 0, 1], "from": 1},
                {"reduce": [["input", 0, 1], ["scratch", 0, 1]], "into": ["wide", 0, 1]},
                {"convert": ["wide", 0, 1], "into": ["output", 0, 1]}]],
              [[{"send": ["input", 0, 1], "to": 0}]]]})";
  const std::string svg = directory.path() + "/wrong.svg";
  CHECK(draw({"--algorithm", "file:" + json, "-o", svg}) == 1);
  CHECK(count_of(content(svg), "→") == 1);
}

TEST_CASE("draw: a wrong command line is one sentence", "[colbench]") {
  CHECK(draw_error({}).find("--algorithm") != std::string::npos);
  CHECK(draw_error({"--algorithm", "mts"}).find("did you mean 'mst'") != std::string::npos);
  CHECK(draw_error({"--algorithm", "mst", "-n", "65"}).find("64") != std::string::npos);
  CHECK(draw_error({"--algorithm", "mst", "-o", "mst.pdf"}).find(".svg") != std::string::npos);
  CHECK(draw_error({"--algorithm", "mst", "--root", "1"}).find("no root") != std::string::npos);
  CHECK(draw_error({"--algorithm", "mst", "--size", "1K", "--count", "4"}).find("one of them") != std::string::npos);
  CHECK(draw_error({"--algorithm", "ring:radix=4"}).find("radix") != std::string::npos);
  CHECK(draw_error({"allgather", "--algorithm", "neighbor", "-n", "7"}).find("even") != std::string::npos);
  CHECK(draw_error({"brodcast", "--algorithm", "mst"}).find("broadcast") != std::string::npos);
}
