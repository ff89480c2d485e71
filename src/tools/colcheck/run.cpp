#include "colcheck/run.hpp"

#include <algorithm>
#include <numeric>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include <col/backend.hpp>

#include "colcheck/engine/mix.hpp"
#include "colcheck/gpus.hpp"
#include "colcheck/shrink.hpp"
#include "common/exit_codes.hpp"

namespace col::colcheck {
namespace {

using tools::exit_code::kSkipped;
using tools::exit_code::kSuccess;
using tools::exit_code::kWrongData;

// Failures that get a smallest case, and what may be tried for each.
constexpr int kMostShrunken = 3;
constexpr int kMostTries = 60;
// For all of them together. One try may take a timeout longer.
constexpr Duration kShrinkingTime = std::chrono::seconds(30);

// A case that cannot be asked for proves nothing about one that can.
bool is_refusal(const CaseResult& result) {
  return result.text.starts_with("invalid_argument") || result.text.starts_with("unavailable");
}

}  // namespace

Run::Run(Lead& lead, const Options& options, const ContextSpec& spec, RunListener listener)
    : lead_(lead), options_(options), spec_(spec), listener_(std::move(listener)) {}

std::vector<int> Run::numbers_of_ranks() const {
  std::vector<int> numbers = options_.ranks.value_or(default_ranks(options_.effort));
  if (!options_.ranks) {
    // The world's own size is what its user cares about most.
    std::erase_if(numbers, [&](int ranks) { return ranks > spec_.world_size; });
    if (numbers.empty() || numbers.back() < spec_.world_size) numbers.push_back(spec_.world_size);
  }
  if (numbers.back() > spec_.world_size)
    throw UsageError(fmt::format("--np {} needs that many ranks, and this world has {}; start more, or ask for fewer",
                                 numbers.back(), spec_.world_size));
  return numbers;
}

Run::Chosen Run::chosen() const {
  Chosen chosen;
  for (const Property* property : chosen_properties(options_))
    (property->kind == Property::Kind::fault ? chosen.drills : chosen.usual).push_back(property);
  return chosen;
}

void Run::find_backends(Results& results, Selection& selection) {
  const std::vector<std::string> all = {"shm", "gloo", "nccl"};
  for (const std::string& name : options_.backends.empty() ? all : options_.backends) {
    BackendFactory* factory = find_backend(name);
    if (factory == nullptr) {
      results.unavailable.push_back({name, "this build has no such backend"});
      continue;
    }
    if (const auto reason = factory->unavailable_reason()) {
      results.unavailable.push_back({name, *reason});
      continue;
    }
    if (factory->device() != Device::Type::cpu) {
      results.unavailable.push_back({name, why_no_gpus()});
      continue;
    }
    std::string why;
    const auto natives = lead_.probe(name, why);
    // It says that it works: that it does not is a failure, not a skip.
    if (!natives) throw RunEnded{kWrongData, fmt::format("no group can be made over {}: {}", name, why)};
    selection.backends.push_back(name);
    selection.natives[name] = *natives;
  }
  results.backends = selection.backends;
}

std::vector<CaseResult> Run::run_portion(const Portion& portion) {
  if (portion.kind == Property::Kind::group) return lead_.run(portion.cases);
  if (portion.kind == Property::Kind::alone) return lead_.share(portion.cases);
  return lead_.by_itself(portion.cases);
}

void Run::run_portions(const std::vector<Portion>& portions, Results& results) {
  const auto total =
      std::accumulate(portions.begin(), portions.end(), results.cases.size(),
                      [](std::size_t sum, const Portion& portion) { return sum + portion.cases.size(); });
  if (listener_.on_planned) listener_.on_planned(total);
  const auto take = [&](std::vector<CaseResult> found) {
    for (CaseResult& result : found) {
      if (listener_.on_result) listener_.on_result(result);
      results.cases.push_back(std::move(result));
    }
  };
  for (const Portion& portion : portions) {
    try {
      take(run_portion(portion));
    } catch (RunEnded& ended) {
      take(std::move(ended.own));
      throw;
    }
  }
}

// The same again and again with other seeds, until something fails: more of the same would hide it.
void Run::run_until(Deadline deadline, Selection selection, Results& results) {
  std::vector<const Property*> grouped = chosen().usual;
  std::erase_if(grouped, [](const Property* property) { return property->kind != Property::Kind::group; });
  for (std::uint64_t round = 1; !deadline.expired(); ++round) {
    selection.seed = mix(results.seed, round);
    for (const Portion& portion : schedule(grouped, selection)) {
      if (deadline.expired() || results.count(Finding::Verdict::fail) > 0) return;
      const auto before = static_cast<std::ptrdiff_t>(results.cases.size());
      run_portions({portion}, results);
      const auto passed = std::remove_if(results.cases.begin() + before, results.cases.end(),
                                         [](const CaseResult& r) { return r.verdict == Finding::Verdict::pass; });
      results.passed_while_soaking += static_cast<std::size_t>(results.cases.end() - passed);
      results.cases.erase(passed, results.cases.end());
    }
  }
}

void Run::run_token(Results& results) {
  const Case& c = *options_.repro;
  const Property* property = find_property(c.property);
  if (property == nullptr) throw UsageError(fmt::format("the token's property '{}' does not exist", c.property));
  if (property->kind == Property::Kind::group && c.ranks > spec_.world_size)
    throw UsageError(
        fmt::format("the token needs {} ranks, and this world has {}; start more", c.ranks, spec_.world_size));
  if (!c.backend.empty()) results.backends = {c.backend};
  results.ranks = {c.ranks};
  run_portions({{property->kind, {c}}}, results);
}

void Run::find_smallest(Results& results) {
  const Deadline deadline = Deadline::after(kShrinkingTime);
  std::set<std::tuple<std::string, std::string, Primitive, std::string>> seen;
  for (CaseResult& result : results.cases) {
    if (static_cast<int>(seen.size()) == kMostShrunken || deadline.expired()) return;
    const Property* property = find_property(result.c.property);
    if (result.verdict != Finding::Verdict::fail || property->kind != Property::Kind::group) continue;
    if (!seen.insert({result.c.property, result.c.backend, result.c.primitive, result.c.algorithm}).second) continue;
    const auto smallest = shrink(result.c, kMostTries, [&](const Case& c) -> std::optional<CaseResult> {
      if (deadline.expired()) return std::nullopt;
      std::vector<CaseResult> found = lead_.run({&c, 1});
      if (found.empty() || found[0].verdict != Finding::Verdict::fail || is_refusal(found[0])) return std::nullopt;
      return std::move(found[0]);
    });
    if (!smallest) continue;
    result.smallest_token = token_of(smallest->c);
    result.smallest_text = smallest->text;
  }
}

int Run::run(Results& results) {
  try {
    if (options_.repro) {
      run_token(results);
    } else {
      Selection selection{.effort = options_.effort, .seed = results.seed, .algorithms = options_.algorithms};
      const auto [usual, drills] = chosen();
      if (!usual.empty()) selection.ranks = results.ranks = numbers_of_ranks();
      const Deadline deadline = Deadline::after(options_.soak);
      find_backends(results, selection);
      check_algorithms(options_, selection.natives);
      if (selection.backends.empty()) return kSkipped;
      std::vector<Portion> portions = schedule(usual, selection);
      // Drills start ranks of their own, as many as they want.
      Selection of_drills = selection;
      of_drills.ranks = options_.ranks.value_or(default_ranks(options_.effort));
      for (Portion& portion : schedule(drills, of_drills)) portions.push_back(std::move(portion));
      run_portions(portions, results);
      if (options_.soak > Duration::zero()) run_until(deadline, selection, results);
      find_smallest(results);
    }
  } catch (const RunEnded& ended) {
    results.ended_early = ended.why;
    return ended.exit_code;
  }
  if (results.count(Finding::Verdict::fail) > 0) return kWrongData;
  return results.count(Finding::Verdict::pass) > 0 ? kSuccess : kSkipped;
}

}  // namespace col::colcheck
