// Plans that users write: what is read, what is refused, and with which words.
#include <cstddef>
#include <fstream>
#include <functional>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <col/plan.hpp>

#include "cases.hpp"
#include "support/catch.hpp"
#include "support/temp_dir.hpp"

namespace col {
namespace {

using nlohmann::json;

// Two ranks swap their halves of the vector, add, and swap the sums.
const std::string kExchange = R"({
  "version": 1, "name": "exchange", "collective": "allreduce", "ranks": 2, "unit": "chunks", "chunks": 2,
  "plans": [
    [[{"send": ["input", 1, 1], "to": 1}, {"recv": ["scratch", 0, 1], "from": 1},
      {"reduce": [["input", 0, 1], ["scratch", 0, 1]], "into": ["wide", 0, 1]},
      {"convert": ["wide", 0, 1], "into": ["output", 0, 1]}],
     [{"send": ["output", 0, 1], "to": 1}, {"recv": ["output", 1, 1], "from": 1}]],
    [[{"send": ["input", 0, 1], "to": 0}, {"recv": ["scratch", 1, 1], "from": 0},
      {"reduce": [["scratch", 1, 1], ["input", 1, 1]], "into": ["wide", 1, 1]},
      {"convert": ["wide", 1, 1], "into": ["output", 1, 1]}],
     [{"send": ["output", 1, 1], "to": 0}, {"recv": ["output", 0, 1], "from": 0}]]
  ]})";

// Rank 0 sends four elements, which rank 1 receives.
const std::string kBroadcast = R"({
  "version": 1, "name": "two", "collective": "broadcast", "ranks": 2, "root": 0, "unit": "elements", "count": 4,
  "plans": [ [[{"send": ["output", 0, 4], "to": 1}]], [[{"recv": ["output", 0, 4], "from": 0}]] ]})";

// The message of the refusal of `text`; empty when it is read.
std::string refusal(const std::string& text) {
  try {
    (void)PlanFile::parse(text);
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::invalid_argument);
    return error.message();
  }
  return {};
}

// The same for a good file in which one thing was changed.
std::string refusal_after(const std::string& good, const std::function<void(json&)>& change) {
  REQUIRE(refusal(good).empty());
  json file = json::parse(good);
  change(file);
  return refusal(file.dump());
}

Verdict verdict_of(const PlanFile& file, const PlanProblem& problem) {
  return verify(problem, [&](int rank) { return file.build(problem.request(rank)); });
}

void check_says(const std::string& message, const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    INFO("message: " << message);
    CHECK(message.find(word) != std::string::npos);
  }
}

// The same where one place of the file has another value.
std::string refusal_with(const std::string& good, const std::string& place, const json& value) {
  return refusal_after(good, [&](json& file) { file[json::json_pointer(place)] = value; });
}

}  // namespace

TEST_CASE("plan file: a plan in chunks serves every count", "[plan]") {
  const PlanFile file = PlanFile::parse(kExchange);
  CHECK(file.name() == "exchange");
  CHECK(file.collective() == Collective::allreduce);
  CHECK(file.ranks() == 2);
  for (std::size_t count = 0; count < 12; ++count) {
    for (const test::Mode mode : test::modes_of(Collective::allreduce)) {
      if (mode.in_place || mode.wide_input) continue;  // this plan is for neither, as verify() says
      const PlanProblem problem(
          {.collective = Collective::allreduce, .size = 2, .count = count, .widens = mode.widens});
      REQUIRE(file.refuse(problem.request(0)) == std::nullopt);
      const Verdict verdict = verdict_of(file, problem);
      INFO("count " << count << ": " << verdict.problem);
      CHECK(verdict.good);
    }
  }
}

TEST_CASE("plan file: chunks are cut like blocks that differ by one element at most", "[plan]") {
  const PlanFile file = PlanFile::parse(kExchange);
  const PlanProblem problem({.collective = Collective::allreduce, .size = 2, .count = 7});
  const Plan plan = file.build(problem.request(1));
  CHECK(plan.scratch == 7);  // chunks 0 and 1, of 4 and 3 elements
  Round round;
  plan.round(0, round);
  REQUIRE(round.steps().size() == 4);
  CHECK(round.steps()[0].left == Slice{Buffer::input, 0, 4});
  CHECK(round.steps()[1].to == Slice{Buffer::scratch, 4, 3});
}

TEST_CASE("plan file: temporary chunks repeat the lengths of the vector's", "[plan]") {
  json text = json::parse(kExchange);
  text["plans"][0][0][1]["recv"] = {"scratch", 2, 1};  // as long as chunk 0
  text["plans"][0][0][2]["reduce"][1] = {"scratch", 2, 1};
  const PlanFile file = PlanFile::parse(text.dump());
  const PlanProblem problem({.collective = Collective::allreduce, .size = 2, .count = 7});
  CHECK(file.build(problem.request(0)).scratch == 11);  // 4 + 3 + 4
  CHECK(verdict_of(file, problem).good);
}

TEST_CASE("plan file: chunks of a block collective are those of its blocks", "[plan]") {
  // Each rank sends its block to the other one; the output is two blocks of two chunks.
  const std::string text = R"({"version": 1, "name": "swap", "collective": "allgather", "ranks": 2, "unit": "chunks",
    "chunks": 2, "plans": [
      [[{"send": ["input", 0, 2], "to": 1}, {"recv": ["output", 2, 2], "from": 1},
        {"copy": ["input", 0, 2], "into": ["output", 0, 2]}]],
      [[{"send": ["input", 0, 1], "to": 0}, {"send": ["input", 1, 1], "to": 0}, {"recv": ["output", 0, 2], "from": 0},
        {"copy": ["input", 0, 2], "into": ["output", 2, 2]}]]]})";
  check_says(refusal(text), {"/plans/1/0/0", "differ in length for some counts"});  // one message became two
  json fixed = json::parse(text);
  fixed["plans"][1][0][0]["send"] = {"input", 0, 2};
  fixed["plans"][1][0].erase(1);
  const PlanFile file = PlanFile::parse(fixed.dump());
  for (const std::size_t count : {0, 1, 2, 3, 8}) {
    const Verdict verdict =
        verdict_of(file, PlanProblem({.collective = Collective::allgather, .size = 2, .count = count}));
    INFO("count " << count << ": " << verdict.problem);
    CHECK(verdict.good);
  }
}

TEST_CASE("plan file: the example of the documentation is right, for every count and in place, too", "[plan]") {
  std::ifstream page(COL_SOURCE_DIR "/docs/plans.md");
  const std::string text((std::istreambuf_iterator<char>(page)), std::istreambuf_iterator<char>());
  const std::string fence = "\n```json\n";
  const std::size_t begin = text.find(fence);
  REQUIRE(begin != std::string::npos);
  const std::size_t end = text.find("\n```\n", begin + fence.size());
  REQUIRE(end != std::string::npos);
  const PlanFile file = PlanFile::parse(text.substr(begin + fence.size(), end - begin - fence.size()));
  CHECK(file.name() == "ring of three");
  for (const std::size_t count : {0, 1, 2, 3, 4, 5, 6, 100}) {
    for (const test::Mode mode : test::modes_of(Collective::allreduce)) {
      if (mode.wide_input) continue;  // its first messages are of the user's type
      const PlanProblem problem({.collective = Collective::allreduce,
                                 .size = 3,
                                 .count = count,
                                 .widens = mode.widens,
                                 .in_place = mode.in_place});
      REQUIRE(file.refuse(problem.request(0)) == std::nullopt);
      const Verdict verdict = verdict_of(file, problem);
      INFO("count " << count << ", in place " << mode.in_place << ", widens " << mode.widens << ": "
                    << verdict.problem);
      CHECK(verdict.good);
    }
  }
}

TEST_CASE("plan file: a barrier has no chunks", "[plan]") {
  const std::string text =
      R"({"version": 1, "name": "b", "collective": "barrier", "ranks": 2, "unit": "chunks", "plans": [
    [[{"send": [], "to": 1}, {"recv": [], "from": 1}]], [[{"send": [], "to": 0}, {"recv": [], "from": 0}]]]})";
  const PlanFile file = PlanFile::parse(text);
  CHECK(verdict_of(file, PlanProblem({.collective = Collective::barrier, .size = 2})).good);
  check_says(refusal_after(text, [](json& f) { f["chunks"] = 2; }), {"'chunks' has no meaning for barrier"});
}

TEST_CASE("plan file: files of equal text have equal hashes, others do not", "[plan]") {
  CHECK(PlanFile::parse(kExchange).hash() == PlanFile::parse(kExchange).hash());
  CHECK(PlanFile::parse(kExchange).hash() != PlanFile::parse(kBroadcast).hash());
  CHECK(PlanFile::parse(kExchange).hash() != 0);
}

TEST_CASE("plan file: a plan outlives the file it was built from", "[plan]") {
  const PlanProblem problem({.collective = Collective::allreduce, .size = 2, .count = 4});
  Plan plan;
  {
    const PlanFile file = PlanFile::parse(kExchange);
    plan = file.build(problem.request(0));
  }
  Round round;
  plan.round(1, round);
  CHECK(round.steps().size() == 2);
}

TEST_CASE("plan file: calls that it is not for are refused with the reason", "[plan]") {
  const PlanFile chunks = PlanFile::parse(kExchange);
  const PlanFile elements = PlanFile::parse(kBroadcast);
  const auto why = [](const PlanFile& file, const PlanProblem::Spec& spec) {
    return file.refuse(PlanProblem(spec).request(0)).value_or("nothing");
  };
  CHECK(why(chunks, {.collective = Collective::allreduce, .size = 8}) == "the plan is for 2 ranks, the group has 8");
  CHECK(why(chunks, {.collective = Collective::scan, .size = 2}) == "the plan is for allreduce, the call is scan");
  CHECK(why(elements, {.collective = Collective::broadcast, .size = 2, .root = 1, .count = 4}) ==
        "the plan is for root 0, the call has root 1");
  CHECK(why(elements, {.collective = Collective::broadcast, .size = 2, .count = 5}) ==
        "the plan is for 4 elements, the call has 5");
  CHECK(why(elements, {.collective = Collective::broadcast, .size = 2, .count = 4, .widens = true}) ==
        "the call widens partial results (narrow floats), the plan does not");
  CHECK(why(elements, {.collective = Collective::broadcast, .size = 2, .count = 4, .wide_input = true}) ==
        "the call has a wide input, the plan takes one of the user's type");
  CHECK(why(elements, {.collective = Collective::broadcast, .size = 2, .count = 4, .in_place = true}) ==
        "the plan is for an input and an output of their own, the call is in place");
  CHECK(why(elements, {.collective = Collective::broadcast, .size = 2, .count = 4}) == "nothing");

  const PlanProblem v({.collective = Collective::allgatherv, .size = 2, .counts = {1, 2}});
  const PlanFile blocks =
      PlanFile::parse(plan_to_json(v, plans_of(test::algorithm(Collective::allgatherv, "ring"), v), "v"));
  CHECK(why(blocks, {.collective = Collective::allgatherv, .size = 2, .counts = {1, 3}}) ==
        "the plan is for other counts than the call's");
  PlanRequest spread = v.request(0);
  const std::vector<std::size_t> displacements = {0, 2};
  spread.out_displacements = displacements;
  check_says(blocks.refuse(spread).value_or("nothing"), {"one after the other", "displacements"});
}

TEST_CASE("plan file: a count whose temporary buffers no memory holds is refused", "[plan]") {
  PlanRequest request = PlanProblem({.collective = Collective::allreduce, .size = 2}).request(0);
  request.count = std::size_t{1} << 60;
  const PlanFile file = PlanFile::parse(kExchange);
  check_says(file.refuse(request).value_or("nothing"), {"temporary buffers", "elements"});
}

TEST_CASE("plan file: malformed JSON is refused with line and column", "[plan]") {
  check_says(refusal(""), {"not valid JSON at line 1, column 1"});
  check_says(refusal("{\n  \"version\": 1,\n}"), {"line 3, column 1", "expected"});
  check_says(refusal("{\"version\": 1} x"), {"not valid JSON", "column 16"});
  check_says(refusal("{\"version\": 1, \"version\": 1}"), {"'version' comes twice"});
  check_says(refusal("{\"version\": 1e999}"), {"not usable as JSON"});
  check_says(refusal(std::string(100000, '[')), {"nested more than 16 deep"});
  check_says(refusal("{\"name\": \"\xff\"}"), {"not valid JSON", "UTF-8"});
  check_says(refusal("[]"), {"should be an object, and is a list"});
}

TEST_CASE("plan file: headers that make no sense are refused by member", "[plan]") {
  const auto with = [](const std::string& place, const json& value) { return refusal_with(kExchange, place, value); };
  const auto after = [](const std::function<void(json&)>& change) { return refusal_after(kExchange, change); };
  check_says(with("/version", 2), {"/version", "is 2", "reads 1"});
  check_says(with("/version", "1"), {"/version", "whole number", "is a text"});
  check_says(after([](json& f) { f.erase("version"); }), {"lacks the member 'version'"});
  check_says(with("/chunk", 2), {"unknown member 'chunk'", "did you mean 'chunks'?"});
  check_says(with("/zzzzzz", 2), {"unknown member 'zzzzzz'", "known here: version, name"});
  check_says(after([](json& f) { f.erase("name"); }), {"lacks the member 'name'"});
  check_says(with("/name", 3), {"/name", "should be a text, and is a number"});
  check_says(with("/collective", "allreduec"), {"/collective", "did you mean 'allreduce'?"});
  check_says(with("/collective", "qqqqqqqqq"), {"unknown collective", "use one of allreduce, reduce"});
  check_says(with("/collective", "send"), {"unknown collective 'send'"});
  check_says(with("/unit", "bytes"), {"/unit", "unknown unit 'bytes'", "'elements' or 'chunks'"});
  check_says(with("/ranks", 3), {"/plans", "has 2 lists for 3 ranks"});
  check_says(with("/ranks", 0), {"/ranks", "from 1 to", "is 0"});
  check_says(with("/ranks", -2), {"/ranks", "whole number", "is -2"});
  check_says(with("/ranks", 2.5), {"/ranks", "is 2.5"});
  check_says(with("/plans", 2), {"/plans", "should be a list of plans"});
  check_says(with("/chunks", 0), {"/chunks", "from 1 to"});
  check_says(with("/chunks", 1u << 30), {"/chunks", "from 1 to 524288"});
  check_says(with("/root", 0), {"'root' has no meaning for allreduce"});
  check_says(with("/count", 4), {"'count' has no meaning for allreduce in chunks"});
  check_says(with("/in_place", true), {"'in_place' has no meaning for allreduce in chunks"});
  check_says(with("/collective", "alltoallv"), {"alltoallv cannot be in chunks", "'elements'"});
  check_says(with("/collective", "reduce"), {"lacks the member 'root'"});
}

TEST_CASE("plan file: elements need their count, and exact types", "[plan]") {
  const auto with = [](const std::string& place, const json& value) { return refusal_with(kBroadcast, place, value); };
  check_says(refusal_after(kBroadcast, [](json& f) { f.erase("count"); }), {"lacks the member 'count'"});
  check_says(with("/count", std::size_t{1} << 60), {"/count", "whole number from 0 to"});
  check_says(with("/count", 3), {"/plans/0/0/0/send", "ends at element 4", "has 3 elements"});
  check_says(with("/in_place", 1), {"/in_place", "true or false, and is a number"});
  check_says(with("/root", 2), {"/root", "from 0 to 1"});
  check_says(with("/counts", json::array({1, 2})), {"'counts' has no meaning for broadcast"});
  check_says(with("/chunks", 2), {"'chunks' has no meaning for broadcast in elements"});

  const PlanProblem problem({.collective = Collective::alltoallv, .size = 2, .counts = {1, 2, 3, 4}});
  const std::string v = plan_to_json(problem, plans_of(test::algorithm(Collective::alltoallv, "linear"), problem), "v");
  check_says(refusal_with(v, "/counts", json::array({1, 2})), {"/counts/0", "list of counts"});
  check_says(refusal_with(v, "/counts", json::array({{1, 2}})), {"/counts", "1 rows for 2 ranks"});
  check_says(refusal_with(v, "/counts/1", {1}), {"/counts/1", "has 1 counts for 2 ranks"});
  check_says(refusal_with(v, "/counts/0", {std::size_t{1} << 53, 1}), {"/counts", "all counts together"});
}

TEST_CASE("plan file: steps that make no sense are refused by place", "[plan]") {
  const auto with = [](const std::string& place, const json& value) {
    return refusal_with(kExchange, "/plans/0/0/0" + place, value);
  };
  const auto erased = refusal_after(kExchange, [](json& f) { f[json::json_pointer("/plans/0/0/0")].erase("to"); });
  check_says(with("", 3), {"/plans/0/0/0", "should be an object"});
  check_says(with("", json::object()), {"/plans/0/0/0", "needs one of send, recv, reduce"});
  check_says(with("", {{"snd", {"input", 0, 1}}}), {"'snd'", "did you mean 'send'?"});
  check_says(erased, {"/plans/0/0/0", "lacks the member 'to'"});
  check_says(with("/from", 1), {"/plans/0/0/0", "unknown member 'from'"});
  check_says(with("/to", 2), {"/plans/0/0/0/to", "from 0 to 1", "is 2"});
  check_says(with("/to", 0), {"/plans/0/0/0/to", "rank 0 names itself", "copy"});
  check_says(with("/send", "input"), {"/plans/0/0/0/send", "should be a list"});
  check_says(with("/send", {"input", 0}), {"/send", "a slice is [buffer, first chunk, number of chunks]"});
  check_says(with("/send/0", "inptu"), {"/send/0", "unknown buffer 'inptu'", "did you mean 'input'?"});
  check_says(with("/send/1", -1), {"/send/1", "whole number", "is -1"});
  check_says(with("/send/2", 0), {"/send/2", "from 1 to", "is 0"});
  check_says(with("/send/2", 2), {"/send", "ends at chunk 3", "input of rank 0 has 2 chunks"});
  check_says(with("/send", {"scratch", 1u << 20, 1}), {"/send", "scratch of rank 0 has 1048576"});
  check_says(with("", {{"copy", {"output", 0, 1}}, {"into", {"input", 0, 1}}}),
             {"/plans/0/0/0/into", "the input is never written"});
  check_says(with("", {{"copy", {"input", 0, 1}}, {"into", {"output", 0, 2}}}),
             {"/plans/0/0/0", "slices of a copy", "same number of chunks"});
  check_says(with("", {{"copy", json::array()}, {"into", {"output", 0, 2}}}), {"/copy", "a slice is"});
  check_says(with("", {{"reduce", {{"input", 0, 1}}}, {"into", {"output", 0, 1}}}),
             {"/plans/0/0/0/reduce", "two slices, left and right"});
}

TEST_CASE("plan file: slices that are equally long for some counts only are refused", "[plan]") {
  check_says(refusal_with(kExchange, "/plans/0/0/1/recv", {"scratch", 1, 1}),
             {"/plans/1/0/0", "sends [input, 0, 1]", "rank 0 receives as [scratch, 1, 1]", "mod 2"});
  check_says(refusal_with(kExchange, "/plans/0/0/3/convert", {"wide", 1, 1}),
             {"/plans/0/0/3", "[wide, 1, 1] and [output, 0, 1]", "mod 2"});
  check_says(refusal_with(kExchange, "/plans/0/0/0/send", json::array()),
             {"/plans/0/0/0", "sends []", "receives as [scratch, 1, 1]"});
}

TEST_CASE("plan file: temporary buffers may be larger than what is used, and not smaller", "[plan]") {
  json file = json::parse(kExchange);
  file["scratch"] = 5;
  const PlanProblem problem({.collective = Collective::allreduce, .size = 2, .count = 2});
  CHECK(PlanFile::parse(file.dump()).build(problem.request(0)).scratch == 5);
  file["scratch"] = {1, 2};
  CHECK(PlanFile::parse(file.dump()).build(problem.request(1)).scratch == 2);
  const auto with = [](const json& scratch) { return refusal_with(kExchange, "/scratch", scratch); };
  check_says(with(1), {"/scratch", "is 1", "rank 1 uses 2 chunks of scratch"});
  check_says(with(json::array({1, 1})), {"/scratch/1", "is 1", "rank 1 uses 2 chunks"});
  check_says(with(json::array({1})), {"/scratch", "has 1 numbers for 2 ranks"});
  check_says(with(std::size_t{1} << 40), {"/scratch", "from 0 to 1048576"});
}

TEST_CASE("plan file: a plan that reads well and does wrong is left to the verifier", "[plan]") {
  json file = json::parse(kExchange);
  file["plans"][0][1][1]["from"] = 1;
  file["plans"][0][1].erase(0);  // rank 1 now waits for a message that never comes
  const Verdict verdict = verdict_of(PlanFile::parse(file.dump()),
                                     PlanProblem({.collective = Collective::allreduce, .size = 2, .count = 4}));
  CHECK_FALSE(verdict.good);
  CHECK_FALSE(verdict.problem.empty());
}

TEST_CASE("plan file: loading names the file", "[plan]") {
  const test::TempDir dir;
  const std::string path = dir.path() + "/my.json";
  std::ofstream(path) << kExchange;
  CHECK(PlanFile::load(path).hash() == PlanFile::parse(kExchange).hash());
  std::ofstream(path) << "{";
  const auto message = [](const std::string& file) -> std::string {
    try {
      (void)PlanFile::load(file);
    } catch (const Error& error) {
      return error.what();
    }
    return {};
  };
  check_says(message(path), {"invalid_argument", "plan '" + path + "'", "not valid JSON"});
  check_says(message(dir.path() + "/none.json"), {"io: cannot read plan", "none.json", "No such file"});
  check_says(message(dir.path()), {"io: cannot read plan", "directory"});
}

TEST_CASE("plan file: it says into how many chunks it cuts a vector", "[plan]") {
  CHECK(PlanFile::parse(kExchange).chunks() == 2);
  CHECK(PlanFile::parse(kBroadcast).chunks() == 0);
}

}  // namespace col
