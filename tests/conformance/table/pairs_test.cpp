// Every pair of circumstances: a primitive by one of its algorithms, a number of ranks (as threads or as processes), a
// backend, a type, an operator, a count, a root, in place or not, blocking or not. Groups are made once, and serve many
// cases.
#include <algorithm>
#include <array>
#include <atomic>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <col/col.hpp>
#include <col/select.hpp>

#include "conformance/group/backends.hpp"
#include "conformance/table/call.hpp"
#include "conformance/table/covering.hpp"
#include "support/catch.hpp"
#include "support/ranks.hpp"

namespace {

using namespace col::test;

constexpr std::uint64_t kSeed = 20261121;

struct World {
  int ranks;
  bool processes = false;
};
constexpr std::array kWorlds = {World{1},  World{2},       World{3},       World{4},       World{5},
                                World{6},  World{7},       World{8},       World{9},       World{13},
                                World{16}, World{1, true}, World{2, true}, World{5, true}, World{8, true}};

// A primitive, by its default algorithm or by a registered one.
struct Form {
  Primitive primitive = Primitive::barrier;
  const col::Algorithm* algorithm = nullptr;
  std::string text = {};  // of the algorithm, as an option
};

std::vector<Form> all_forms() {
  std::vector<Form> forms;
  for (int i = 0; i < kPrimitiveCount; ++i) {
    const auto primitive = static_cast<Primitive>(i);
    forms.push_back({primitive});
    for (const col::Algorithm& algorithm : col::algorithms()) {
      if (algorithm.collective != collective_of(primitive)) continue;
      const std::string name(algorithm.name);
      forms.push_back({primitive, &algorithm, name});
      if (algorithm.parameters.find("radix") != std::string_view::npos)
        forms.push_back({primitive, &algorithm, name + ":radix=3"});
      if (algorithm.parameters.find("segment") != std::string_view::npos)
        forms.push_back({primitive, &algorithm, name + ":segment=64"});
    }
  }
  return forms;
}

const std::vector<Form>& forms() {
  static const std::vector<Form> kForms = all_forms();
  return kForms;
}

bool serves(const Form& form, int ranks) {
  if (form.algorithm == nullptr) return true;
  col::PlanRequest request{.collective = form.algorithm->collective, .size = ranks};
  request.parameters.radix = col::AlgorithmSpec::parse(form.text).radix;
  return !form.algorithm->refuse(request);
}

// The parameters of a row, in this order; the last value of those with a "none" stands for it.
enum Parameter : std::size_t { kForm, kWorld, kBackend, kDType, kOperator, kCount, kRoot, kPlace, kWay };
constexpr int kNoDType = col::kDTypeCount, kNoOperator = kOperatorCount, kNoCount = kCountClasses, kNoRoot = 16;

bool form_allows(const Form& form, Choice other) {
  const Primitive primitive = form.primitive;
  const bool moves = primitive != Primitive::barrier;
  switch (other.parameter) {
    case kWorld:
      return serves(form, kWorlds[static_cast<std::size_t>(other.value)].ranks);
    case kDType:
      return moves == (other.value != kNoDType);
    case kOperator:
      if (static_cast<Operator>(other.value) == Operator::ordered && form.algorithm != nullptr &&
          form.algorithm->order == col::FoldOrder::any)
        return false;
      return is_reduction(primitive) == (other.value != kNoOperator);
    case kCount:
      return moves == (other.value != kNoCount);
    case kRoot:
      return is_rooted(primitive) == (other.value != kNoRoot);
    case kPlace:
      return other.value == 0 || has_in_place(primitive);
    case kWay:
      return other.value == 0 || has_i_form(primitive);
    default:
      return true;
  }
}

bool compatible(Choice a, Choice b) {
  if (a.parameter == kForm) return form_allows(forms()[static_cast<std::size_t>(a.value)], b);
  if (a.parameter == kWorld && b.parameter == kRoot)
    return b.value == kNoRoot || b.value < kWorlds[static_cast<std::size_t>(a.value)].ranks;
  if (a.parameter == kDType && b.parameter == kOperator && a.value != kNoDType && b.value != kNoOperator)
    return is_defined(static_cast<Operator>(b.value), static_cast<col::DType>(a.value));
  return true;
}

Case case_of(const Row& row, std::size_t number, std::uint64_t seed) {
  const int ranks = kWorlds[static_cast<std::size_t>(row[kWorld])].ranks;
  const Form& form = forms()[static_cast<std::size_t>(row[kForm])];
  Case c;
  c.seed = seed;
  c.primitive = form.primitive;
  c.algorithm = form.text;
  if (row[kDType] != kNoDType) c.dtype = static_cast<col::DType>(row[kDType]);
  if (row[kOperator] != kNoOperator) c.op = static_cast<Operator>(row[kOperator]);
  if (row[kCount] != kNoCount) c.count = count_of(row[kCount], ranks, seed);
  if (row[kRoot] != kNoRoot) c.root = row[kRoot];
  c.in_place = row[kPlace] == 1;
  c.asynchronous = row[kWay] == 1;
  c.tag = tag_of(c.primitive, number);
  return c;
}

// A backend's own algorithms for a collective: what it names when asked for one that does not exist, less the built-in
// ones.
std::vector<std::string> natives(col::Group& group, col::Collective collective) {
  std::vector<std::string> found;
  try {
    group.explain(collective, 0, col::DType::float32, {.algorithm = "no_such_algorithm"});
  } catch (const col::Error& error) {
    std::string text = error.message();
    text.erase(0, text.find("choose from"));
    for (auto at = text.find('\''); at != std::string::npos; at = text.find('\'', at)) {
      const auto end = text.find('\'', at + 1);
      std::string name = text.substr(at + 1, end - at - 1);
      if (col::find_algorithm(collective, name) == nullptr) found.push_back(std::move(name));
      at = end + 1;
    }
  }
  return found;
}

// Calls by algorithms of a backend's own, on all ranks that are threads.
std::atomic<int> natives_run = 0;

// On every rank: throws at the end when a case was not right, and at once when one broke the group.
void run_all(col::Group& group, const std::vector<Case>& cases) {
  std::vector<std::string> problems;
  const auto run = [&](const Case& c) {
    try {
      if (std::string problem = run_case(group, c); !problem.empty()) problems.push_back(std::move(problem));
    } catch (const std::exception& error) {
      problems.push_back(fmt::format("{}: {}", describe(c), error.what()));
      throw std::runtime_error(fmt::format("{}", fmt::join(problems, "\n")));
    }
  };
  for (const Case& c : cases) {
    run(c);
    if (c.asynchronous || !collective_of(c.primitive)) continue;
    for (std::string& name : natives(group, *collective_of(c.primitive))) {
      Case native = c;
      native.algorithm = std::move(name);
      run(native);
      ++natives_run;
    }
  }
  expect(problems.empty(), fmt::format("{} cases are wrong:\n{}", problems.size(), fmt::join(problems, "\n")));
}

bool run_world(const World& world, const std::string& backend, const std::vector<Case>& cases) {
  const auto body = [&](int rank, col::Context& context) {
    col::Group group = context.init_group({.rank = rank, .world_size = world.ranks, .backend_name = backend});
    run_all(group, cases);
    context.finalize();
  };
  const col::test::RankOptions options{.timeout = std::chrono::seconds(30)};
  const auto outcomes = world.processes ? run_processes(world.ranks, body, options, std::chrono::seconds(120))
                                        : run_threads(world.ranks, body, options);
  INFO(backend << ", " << world.ranks << (world.processes ? " processes\n" : " threads\n") << show(outcomes));
  CHECK(all_good(outcomes));
  return all_good(outcomes);
}

void run_rows(std::uint64_t seed) {
  const auto backends = usable_backends();
  const Parameters parameters{
      {static_cast<int>(forms().size()), static_cast<int>(kWorlds.size()), static_cast<int>(backends.size()),
       kNoDType + 1, kNoOperator + 1, kNoCount + 1, kNoRoot + 1, 2, 2},
      compatible};
  std::mt19937_64 random(seed);
  const auto rows = cover(parameters, random);
  const auto possible = possible_pairs(parameters);
  fmt::print("seed {:#x}: {} cases cover {} pairs\n", seed, rows.size(), possible.size());
  INFO(fmt::format("seed {:#x}", seed));

  natives_run = 0;
  std::set<Pair> done;
  for (std::size_t w = 0; w < kWorlds.size(); ++w) {
    for (std::size_t b = 0; b < backends.size(); ++b) {
      std::vector<Case> cases;
      std::set<Pair> pairs;
      for (std::size_t i = 0; i < rows.size(); ++i) {
        if (rows[i][kWorld] != static_cast<int>(w) || rows[i][kBackend] != static_cast<int>(b)) continue;
        cases.push_back(case_of(rows[i], i, mix(seed, i)));
        pairs.merge(pairs_of(rows[i]));
      }
      if (run_world(kWorlds[w], backends[b], cases)) done.merge(pairs);
    }
  }
  CHECK(done == possible);
  // What serves some number of ranks has been run.
  for (std::size_t f = 0; f < forms().size(); ++f) {
    const auto served = std::count_if(kWorlds.begin(), kWorlds.end(),
                                      [&](const World& world) { return serves(forms()[f], world.ranks); });
    const auto ran = std::count_if(done.begin(), done.end(), [&](const Pair& pair) {
      return pair.first == Choice{kForm, static_cast<int>(f)} && pair.second.parameter == kWorld;
    });
    INFO(to_string(forms()[f].primitive) << " " << forms()[f].text);
    CHECK(ran == served);
  }
#ifdef COL_EXPECT_GLOO
  CHECK(natives_run > 0);
#endif
}

}  // namespace

TEST_CASE("pairs: every pair of circumstances is right", "[table]") {
  run_rows(kSeed);
}

TEST_CASE("pairs: every pair of circumstances is right with other inputs each time", "[table]") {
  run_rows(fresh_seed());
}
