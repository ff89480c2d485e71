#include "colcheck/report/report.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "common/text.hpp"
#include "results.hpp"
#include "support/catch.hpp"

using namespace col::colcheck;
namespace tools = col::tools;

namespace {

constexpr tools::Style kPlain{.utf8 = true};

using tools::lines_of;

// The line that begins with `start`; empty when there is none.
std::string line(const std::string& text, const std::string& start) {
  for (const std::string& candidate : lines_of(text)) {
    if (candidate.starts_with(start)) return candidate;
  }
  return {};
}

// The cells of a row: what stands between two spaces or more.
std::vector<std::string> cells(const std::string& text, const std::string& row) {
  std::vector<std::string> found;
  std::string rest = line(text, row + " ");
  while (!rest.empty()) {
    const std::size_t gap = std::min(rest.find("  "), rest.size());
    found.push_back(rest.substr(0, gap));
    rest.erase(0, std::min(rest.find_first_not_of(' ', gap), rest.size()));
  }
  return found;
}

using Cells = std::vector<std::string>;

std::string matrix(const Results& results) {
  const std::string text = terminal_report(results, kPlain);
  return text.substr(0, text.find("\n\nproperty") + 1);
}

// The lines before and behind the sum, without tables.
Cells around_the_sum(Results results, bool before) {
  results.effort = "repro";
  Cells lines = lines_of(terminal_report(results, kPlain));
  const auto sum = std::ranges::find_if(lines, [](const auto& one) { return one.find("(a skip is") != one.npos; });
  REQUIRE(sum != lines.end());
  return before ? Cells(lines.begin(), sum) : Cells(sum + 1, lines.end());
}

std::string sum_of(const Results& results) {
  for (const std::string& one : lines_of(terminal_report(results, kPlain))) {
    if (one.find("(a skip is") != one.npos) return one;
  }
  return {};
}

std::string last_line(const Results& results) {
  return lines_of(terminal_report(results, kPlain)).back();
}

}  // namespace

TEST_CASE("matrix: a good run has a count in every cell, and a note where there is no backend", "[colcheck]") {
  const std::string text = matrix(good_run());
  CHECK(cells(text, "primitive") == Cells{"primitive", "shm (cpu)", "gloo (cpu)", "nccl (cuda)"});
  for (int i = 0; i < kPrimitiveCount; ++i) {
    const std::string name(to_string(static_cast<Primitive>(i)));
    CHECK(cells(text, name) == Cells{name, "✔ 1", "✔ 1", "– [1]"});
  }
  CHECK(line(text, "[1]") == "[1] nccl: there is no libnccl.so.2");
  CHECK(line(text, "[2]").empty());
  CHECK(text.find("hole") == std::string::npos);
}

TEST_CASE("matrix: failures show among the cases that ran, skips beside them", "[colcheck]") {
  Results results = good_run();
  for (std::uint64_t seed = 2; seed < 1300; ++seed) results.cases.push_back(passed("shm", Primitive::scan, seed));
  results.cases.push_back(failed("gloo", Primitive::scan, 2, "byte 3 is wrong", 7));
  results.cases.push_back(skipped("gloo", Primitive::scan, "no memory", 8));
  results.cases.push_back(skipped("shm", Primitive::scan, "no memory", 9));
  CHECK(cells(matrix(results), "scan") == Cells{"scan", "✔ 1,299 (1 skipped)", "✘ 1/2 (1 skipped)", "– [1]"});
}

TEST_CASE("matrix: a primitive that no case looked at is a hole, and never good", "[colcheck]") {
  Results results = good_run();
  std::erase_if(results.cases, [](const CaseResult& result) {
    return result.c.primitive == Primitive::alltoall && result.c.backend == "gloo";
  });
  const std::string text = matrix(results);
  CHECK(cells(text, "alltoall") == Cells{"alltoall", "✔ 1", "· none", "– [1]"});
  CHECK(line(text, "1 hole in the matrix") == "1 hole in the matrix: nothing is known about them");
  CHECK(tally(results).holes() == 1);
  CHECK(tally(empty_run()).holes() == 2 * kPrimitiveCount);
}

TEST_CASE("matrix: where all was skipped a note says why", "[colcheck]") {
  Results results = empty_run();
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    results.cases.push_back(skipped("shm", Primitive::gather, "needs 4 GiB", seed));
    results.cases.push_back(skipped("gloo", Primitive::gather, "reason " + std::to_string(seed), seed));
  }
  const std::string text = matrix(results);
  CHECK(cells(text, "gather") == Cells{"gather", "– [2]", "– [3]", "– [1]"});
  CHECK(line(text, "[2]") == "[2] skipped: needs 4 GiB");
  CHECK(line(text, "[3]") == "[3] skipped: reason 0; reason 1; reason 2");
}

TEST_CASE("matrix: cases without a backend are in no cell; a backend that came unannounced has a column",
          "[colcheck]") {
  Results results = empty_run();
  results.cases = {passed("", Primitive::allreduce), passed("planted", Primitive::allreduce)};
  const std::string text = matrix(results);
  CHECK(cells(text, "primitive") == Cells{"primitive", "shm (cpu)", "gloo (cpu)", "planted (cpu)", "nccl (cuda)"});
  CHECK(cells(text, "allreduce") == Cells{"allreduce", "· none", "· none", "✔ 1", "– [1]"});
}

TEST_CASE("matrix: each kind of memory has a column, and stand-ins for GPUs are called fake", "[colcheck]") {
  const Results real = gpu_run("NVIDIA H200");
  CHECK(cells(matrix(real), "primitive") ==
        Cells{"primitive", "shm (cpu)", "gloo (cpu)", "nccl (cuda)", "nccl (mixed)"});
  CHECK(cells(matrix(real), "scan") == Cells{"scan", "✔ 1", "✔ 1", "✔ 1", "✔ 1"});
  CHECK(cells(matrix(real), "barrier") == Cells{"barrier", "✔ 1", "✔ 1", "· none", "· none"});
  const std::string text = terminal_report(real, {.utf8 = true});
  CHECK(line(text, "GPUs") == "GPUs: ranks 0, 2: NVIDIA H200 0000:01:00.0; rank 1: NVIDIA H200 0000:02:00.0");
  CHECK(line(text, "NCCL") == "NCCL 2.28.9");
  CHECK(text.find("– nccl: groups of 2 ranks at most here\n") != std::string::npos);
  CHECK(text.find("stand-in") == std::string::npos);

  const Results fake = gpu_run("fake GPU 0");
  CHECK(cells(matrix(fake), "primitive") ==
        Cells{"primitive", "shm (cpu)", "gloo (cpu)", "nccl (cuda, fake)", "nccl (mixed, fake)"});
  CHECK(terminal_report(fake, {.utf8 = true}).find("These are stand-ins for GPUs") != std::string::npos);
}

TEST_CASE("matrix: a device that is missing is a note on its backend", "[colcheck]") {
  Results results = good_run();
  results.unavailable.push_back({"cuda", "no driver"});
  CHECK(line(matrix(results), "[1]") == "[1] nccl: there is no libnccl.so.2; cuda: no driver");
  results.unavailable = {{"cuda", "no driver"}};
  CHECK(cells(matrix(results), "primitive").back() == "nccl (cuda)");
}

TEST_CASE("matrix: columns stand below each other, counted in characters", "[colcheck]") {
  const std::string text = matrix(good_run());
  const auto column = [&](const std::string& row, const std::string& cell) {
    const std::string found = line(text, row);
    return tools::columns_of(std::string_view(found).substr(0, found.rfind(cell)));
  };
  const std::size_t expected = column("primitive", "gloo (cpu)");
  CHECK(column("allreduce", "✔ 1") == expected);
  CHECK(column("reduce_scatterv", "✔ 1") == expected);
  for (const std::string& row : lines_of(text)) CHECK_FALSE(row.ends_with(' '));
}

TEST_CASE("property table: counts and a verdict in words", "[colcheck]") {
  Results results = good_run();
  results.cases.push_back(failed("gloo", Primitive::scan, 2, "wrong", 7));
  CaseResult other = skipped("shm", Primitive::scan, "no memory");
  other.c.property = "zzz_large";
  results.cases.push_back(other);
  CaseResult alone = passed("", Primitive::scan);
  alone.c.property = "zzz_plans";
  results.cases.push_back(alone);
  const std::string text = terminal_report(results, kPlain);
  CHECK(cells(text, "property") == Cells{"property", "shm", "gloo", "no backend", "verdict"});
  CHECK(cells(text, "exact") == Cells{"exact", fmt::format("{}/0/0", kGoodCases), fmt::format("{}/1/0", kGoodCases),
                                      "·", fmt::format("✘ 1 of {} cases failed", kAllGoodCases + 1)});
  CHECK(cells(text, "zzz_large") == Cells{"zzz_large", "0/0/1", "·", "·", "– not checked: all skipped"});
  CHECK(cells(text, "zzz_plans") == Cells{"zzz_plans", "·", "·", "1/0/0", "✔ holds"});
}

TEST_CASE("failures: one line each, with the smallest case and how to run it", "[colcheck]") {
  Results results = empty_run();
  results.cases.push_back(failed("shm", Primitive::scan, 2, "byte 3\nis wrong"));
  results.cases.push_back(failed("shm", Primitive::scan, -1, "the ranks differ", 2));
  results.cases[1].smallest_token = "exact,backend=shm,np=2,coll=scan,algo=file:it's";
  results.cases[1].smallest_text = "byte 0";
  CHECK(around_the_sum(results, true) ==
        Cells{"✘ exact,backend=shm,np=3,coll=scan,seed=0x1: rank 2: byte 3 is wrong",
              "✘ exact,backend=shm,np=3,coll=scan,seed=0x2: the ranks differ",
              "  smallest: exact,backend=shm,np=2,coll=scan,algo=file:it's: byte 0; run: colcheck --repro "
              "'exact,backend=shm,np=2,coll=scan,algo=file:it'\\''s'"});
}

TEST_CASE("failures: the first 50, and how many more there are", "[colcheck]") {
  Results results = empty_run();
  for (std::uint64_t seed = 1; seed <= 1250; ++seed)
    results.cases.push_back(failed("shm", Primitive::scan, 0, "x", seed));
  const auto lines = around_the_sum(results, true);
  REQUIRE(lines.size() == 51);
  CHECK(lines[49].starts_with("✘ exact,backend=shm,np=3,coll=scan,seed=0x32: "));
  CHECK(lines[50] == "… and 1,200 more (see --json)");
  results.cases.resize(50);
  CHECK(around_the_sum(results, true).size() == 50);
}

TEST_CASE("report: reasons of skips, what ended the run, and the sum", "[colcheck]") {
  Results results = good_run();
  results.cases.push_back(skipped("shm", Primitive::scan, "rare", 3));
  results.cases.push_back(skipped("shm", Primitive::scan, "needs 4 GiB", 4));
  results.cases.push_back(skipped("gloo", Primitive::scan, "needs 4 GiB", 5));
  results.ended_early = "rank 3 was killed\nby SIGKILL";
  const auto lines = lines_of(terminal_report(results, kPlain));
  REQUIRE(lines.size() > 6);
  CHECK(Cells(lines.end() - 6, lines.end()) ==
        Cells{"✘ ended before all was tried: rank 3 was killed by SIGKILL",
              fmt::format("{} cases passed, 0 failed, 3 skipped, all of nccl skipped (a skip is not a pass) in 14.2 s; "
                          "seed 0x1f",
                          kAllGoodCases),
              "– all of nccl skipped: there is no libnccl.so.2", "– 2 skipped: needs 4 GiB", "– 1 skipped: rare",
              "the same cases again: colcheck --quick --seed 0x1f"});
}

TEST_CASE("report: the last line repeats the first failure, or all cases", "[colcheck]") {
  Results results = good_run();
  CHECK(last_line(results) == "the same cases again: colcheck --quick --seed 0x1f");
  results.command = "colcheck --seed 0x1f --np 2";
  CHECK(last_line(results) == "the same cases again: colcheck --seed 0x1f --np 2");
  results.cases.push_back(failed("gloo", Primitive::scan, 2, "wrong", 7));
  results.cases.push_back(failed("shm", Primitive::scan, 2, "wrong", 8));
  const std::string report = terminal_report(results, kPlain);
  CHECK(report.ends_with("\nthe first failure alone: colcheck --repro 'exact,backend=gloo,np=3,coll=scan,seed=0x7'"));
  results.cases[results.cases.size() - 2].smallest_token = "exact,backend=gloo,np=2,coll=scan,seed=0x7";
  CHECK(last_line(results).ends_with("colcheck --repro 'exact,backend=gloo,np=2,coll=scan,seed=0x7'"));
}

TEST_CASE("report: of many reasons of skips, the most frequent, and how many more", "[colcheck]") {
  Results results = good_run();
  for (int i = 0; i < 9; ++i) results.cases.push_back(skipped("shm", Primitive::scan, fmt::format("reason {}", i), 3));
  const auto lines = around_the_sum(results, false);
  REQUIRE(lines.size() == 7);
  CHECK(lines[5] == "– 1 skipped: reason 4");
  CHECK(lines[6] == "… and 4 more reasons (see --json)");
}

TEST_CASE("report: the sum has thousands apart, and one case is one", "[colcheck]") {
  Results results = empty_run();
  CHECK(sum_of(results) ==
        "0 cases passed, 0 failed, 0 skipped, all of nccl skipped (a skip is not a pass) in 14.2 s; seed 0x1f");
  results.unavailable.clear();
  CHECK(sum_of(results) == "0 cases passed, 0 failed, 0 skipped (a skip is not a pass) in 14.2 s; seed 0x1f");
  results.cases.push_back(passed("shm"));
  CHECK(sum_of(results).starts_with("1 case passed, "));
  for (std::uint64_t seed = 0; seed < 2411; ++seed) results.cases.push_back(passed("shm", Primitive::scan, seed));
  CHECK(sum_of(results).starts_with("2,412 cases passed, 0 failed, "));
}

TEST_CASE("report: one case run again needs no tables", "[colcheck]") {
  Results results = empty_run();
  results.effort = "repro";
  results.cases = {failed("shm", Primitive::scan, 1, "wrong")};
  const auto lines = lines_of(terminal_report(results, kPlain));
  REQUIRE(lines.size() == 3);  // with that on nccl, which is skipped
  CHECK(lines[0] == "✘ exact,backend=shm,np=3,coll=scan,seed=0x1: rank 1: wrong");
  CHECK(lines[1].starts_with("0 cases passed, 1 failed"));
}

TEST_CASE("report: plain ASCII, colour only when asked for, and nothing that a terminal would obey", "[colcheck]") {
  Results results = good_run();
  results.cases.push_back(failed("gloo", Primitive::scan, 2, kNasty, 7));
  results.cases.push_back(skipped("gloo", Primitive::scan, kNasty, 7));
  results.cases[0].verdict = Finding::Verdict::skip;
  results.cases[0].text = kNasty;
  results.unavailable[0].why = kNasty;
  results.ended_early = kNasty;
  const std::string ascii = terminal_report(results, {});
  CHECK(std::all_of(ascii.begin(), ascii.end(), [](char c) { return c == '\n' || (c >= ' ' && c <= '~'); }));
  CHECK(cells(ascii, "scan") == Cells{"scan", "ok 1", "FAIL 1/2 (1 skipped)", "- [2]"});
  CHECK(terminal_report(results, kPlain).find('\x1b') == std::string::npos);

  std::string coloured = terminal_report(results, {.utf8 = true, .colour = true});
  CHECK(coloured.find("\x1b[31m✘ 1/2 (1 skipped)\x1b[0m") != std::string::npos);
  for (std::size_t start; (start = coloured.find("\x1b[")) != std::string::npos;) {
    coloured.erase(start, coloured.find('m', start) - start + 1);
  }
  CHECK(coloured == terminal_report(results, kPlain));
}

TEST_CASE("result line: one case as it ends", "[colcheck]") {
  CHECK(result_line(passed("shm", Primitive::scan), true) == "✔ exact,backend=shm,np=3,coll=scan,seed=0x1");
  CHECK(result_line(failed("shm", Primitive::scan, 2, "wrong\nhere"), true) ==
        "✘ exact,backend=shm,np=3,coll=scan,seed=0x1: rank 2: wrong here");
  CHECK(result_line(skipped("shm", Primitive::scan, "no memory"), false) ==
        "- exact,backend=shm,np=3,coll=scan,seed=0x1: no memory");
}

TEST_CASE("results: counts by verdict", "[colcheck]") {
  Results results = good_run();
  results.cases.push_back(failed("shm", Primitive::scan, 0, "x"));
  CHECK(results.count(Finding::Verdict::pass) == kAllGoodCases);
  CHECK(results.count(Finding::Verdict::fail) == 1);
  CHECK(results.count(Finding::Verdict::skip) == 0);
}
