#include "colcheck/run.hpp"

#include <algorithm>
#include <numeric>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include <col/channel.hpp>

#include "colcheck/engine/mix.hpp"
#include "colcheck/properties/list.hpp"
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

std::vector<Portion> schedule_all(std::span<const Property* const> properties,
                                  const std::vector<Selection>& selections) {
  std::vector<Portion> all;
  for (const Selection& selection : selections) {
    for (Portion& portion : schedule(properties, selection)) all.push_back(std::move(portion));
  }
  return all;
}

// What Error::what() begins with.
bool is_unavailable(const std::string& text) {
  return text.starts_with("unavailable");
}

// A case that cannot be asked for proves nothing about one that can.
bool is_refusal(const CaseResult& result) {
  return result.text.starts_with("invalid_argument") || is_unavailable(result.text);
}

}  // namespace

Run::Run(Lead& lead, const Options& options, const ContextSpec& spec, RunListener listener)
    : lead_(lead), options_(options), spec_(spec), listener_(std::move(listener)) {}

std::vector<int> Run::numbers_of_ranks() const {
  std::vector<int> numbers = options_.ranks.value_or(default_ranks(options_));
  if (!options_.ranks) {
    // The world's own size is what its user cares about most.
    std::erase_if(numbers, [&](int ranks) { return ranks > spec_.world_size; });
    if (numbers.empty() || numbers.back() < spec_.world_size) numbers.push_back(spec_.world_size);
  }
  if (numbers.back() > spec_.world_size)
    throw UsageError("--np {} needs that many ranks, and this world has {}; start more, or ask for fewer",
                     numbers.back(), spec_.world_size);
  return numbers;
}

Run::Chosen Run::chosen() const {
  Chosen chosen;
  for (const Property* property : chosen_properties(options_))
    (property->kind == Property::Kind::fault ? chosen.drills : chosen.usual).push_back(property);
  return chosen;
}

bool Run::wants_backend(std::string_view name) const {
  const auto& asked = options_.backends;
  // UCX serves the same calls by the same plans as Gloo.
  if (asked.empty()) return name != "ucx" && name != "hosts_ucx";
  return std::find(asked.begin(), asked.end(), name) != asked.end();
}

// Notes that nothing is checked over that backend, and why. Between ranks of one host, nothing is missing without
// hosts.
void Run::leave_out(const std::string& name, const std::string& why, Results& results) {
  if (std::ranges::find(options_.require, name) != options_.require.end())
    throw UsageError("'{}' is required, and cannot be used here: {}", name, why);
  const bool is_extra = name == to_string(Backend::hosts) && options_.backends.empty();
  if (!is_extra) results.unavailable.push_back({name, why});
}

// Those that move memory of the host.
void Run::find_backends(Results& results, Selection& selection) {
  for (const std::string name : {"shm", "gloo", "hosts", "ucx", "hosts_ucx"}) {
    if (!wants_backend(name)) continue;
    BackendFactory* factory = find_backend(name);
    if (factory == nullptr) {
      leave_out(name, "this build has no such backend", results);
      continue;
    }
    if (const auto reason = factory->unavailable_reason()) {
      leave_out(name, *reason, results);
      continue;
    }
    if (!options_.fault_start.empty() && is_over_hosts(name)) {  // drills alone, elsewhere
      selection.backends.push_back(name);
      selection.natives[name] = {};
      continue;
    }
    std::string why;
    const auto natives = lead_.probe(name, spec_.world_size, why);
    // Ranks on several hosts share no memory, and those on one need no wire. What else does not work though it says
    // that it does is a failure, no skip.
    if (!natives && (name == to_string(Backend::shm) || is_over_hosts(name)) && is_unavailable(why)) {
      leave_out(name, why, results);
      continue;
    }
    if (!natives) throw RunEnded{kWrongData, fmt::format("no group can be made over {}: {}", name, why)};
    selection.backends.push_back(name);
    selection.natives[name] = *natives;
  }
}

void Run::find_gpus(Results& results, std::vector<Selection>& all) {
  results.gpus = lead_.look();
  const auto missing =
      std::find_if(results.gpus.begin(), results.gpus.end(), [](const RankGpu& gpu) { return !gpu.why_not.empty(); });
  if (missing != results.gpus.end()) {
    const bool everywhere = std::all_of(results.gpus.begin(), results.gpus.end(),
                                        [&](const RankGpu& gpu) { return gpu.why_not == missing->why_not; });
    const auto rank = missing - results.gpus.begin();
    const std::string why = everywhere ? missing->why_not : fmt::format("on rank {}, {}", rank, missing->why_not);
    const std::string nccl = tools::device_backend();
    results.unavailable.push_back({wants_backend(nccl) ? nccl : "cuda", why});
    results.gpus.clear();
    return;
  }
  if (!all.front().backends.empty()) {
    Selection staged = all.front();
    staged.devices = {Devices::cuda, Devices::mixed};
    staged.seed = mix(staged.seed, 1);
    // Calls on copies start by plans alone, which may begin in any order.
    for (auto& [backend, natives] : staged.natives) {
      for (auto& [collective, all_of_it] : natives) {
        for (Native& native : all_of_it) native.starts = false;
      }
    }
    all.push_back(std::move(staged));
  }
  if (wants_backend(tools::device_backend())) find_nccl(results, all);
}

// NCCL needs a GPU for each rank, unless it can share GPUs and is told to.
void Run::find_nccl(Results& results, std::vector<Selection>& all) {
  const std::string nccl = tools::device_backend();
  for (std::size_t rank = 0; rank < results.gpus.size(); ++rank) {
    const std::string& why = results.gpus[rank].why_no_nccl;
    if (why.empty()) continue;
    results.unavailable.push_back({nccl, rank == 0 ? why : fmt::format("on rank {}, {}", rank, why)});
    return;
  }
  Selection selection = all.front();
  selection.devices = {Devices::cuda, Devices::mixed, Devices::cpu};
  selection.seed = mix(selection.seed, 2);
  selection.backends = {nccl};
  std::string why;
  std::optional<Natives> natives;
  int most = spec_.world_size;
  if (may_share_gpus()) natives = lead_.probe(nccl, most, why);
  if (!natives) {
    most = static_cast<int>(ranks_with_own_gpu(results.gpus));
    natives = lead_.probe(nccl, most, why);
  }
  if (!natives) throw RunEnded{kWrongData, fmt::format("no group can be made over {}: {}", nccl, why)};
  selection.natives = {{nccl, *natives}};
  std::erase_if(selection.ranks, [&](int ranks) { return ranks > most; });
  if (selection.ranks != all.front().ranks) {
    const std::string limit =
        fmt::format("groups of {} at most here: rank {} shares a GPU with another one, and NCCL wants one for each",
                    most == 1 ? "1 rank" : fmt::format("{} ranks", most), most);
    if (selection.ranks.empty()) {
      results.unavailable.push_back({nccl, limit});
      return;
    }
    results.limits.push_back(nccl + ": " + limit);
  }
  all.push_back(std::move(selection));
}

std::vector<Selection> Run::selections(Results& results) {
  Selection on_host{.effort = options_.effort, .seed = results.seed, .algorithms = options_.algorithms};
  if (!chosen().usual.empty()) on_host.ranks = results.ranks = numbers_of_ranks();
  find_backends(results, on_host);
  std::vector<Selection> all = {std::move(on_host)};
  if (options_.device != Options::Device::cpu) find_gpus(results, all);
  if (options_.device == Options::Device::cuda) all.erase(all.begin());
  std::erase_if(all, [](const Selection& selection) { return selection.backends.empty(); });
  for (const Selection& selection : all) {
    for (const Devices devices : selection.devices) {
      for (const std::string& backend : selection.backends) results.backends.push_back({backend, devices});
    }
  }
  return all;
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
      const int sharing = portion.kind == Property::Kind::alone ? spec_.world_size : 1;  // drills start their own ranks
      take(portion.kind == Property::Kind::group ? lead_.run(portion.cases) : lead_.share(portion.cases, sharing));
    } catch (RunEnded& ended) {
      take(std::move(ended.own));
      throw;
    }
  }
}

// The same again and again with other seeds, until something fails: more of the same would hide it.
void Run::run_until(Deadline deadline, std::vector<Selection> selections, Results& results) {
  std::vector<const Property*> grouped = chosen().usual;
  std::erase_if(grouped, [](const Property* property) { return property->kind != Property::Kind::group; });
  const std::vector<Selection> first = selections;
  for (std::uint64_t round = 1; !deadline.expired(); ++round) {
    for (std::size_t i = 0; i < selections.size(); ++i) selections[i].seed = mix(first[i].seed, round);
    for (const Portion& portion : schedule_all(grouped, selections)) {
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
  if (property == nullptr) throw UsageError("the token's property '{}' does not exist", c.property);
  if (property->kind == Property::Kind::group && c.ranks > spec_.world_size)
    throw UsageError("the token needs {} ranks, and this world has {}; start more", c.ranks, spec_.world_size);
  if (!c.backend.empty()) results.backends = {{c.backend, c.devices}};
  if (needs_gpu(c.devices, c.backend)) results.gpus = lead_.look();
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
      const Deadline deadline = Deadline::after(options_.soak);
      const std::vector<Selection> found = selections(results);
      if (found.empty()) return kSkipped;
      decltype(Selection::natives) natives;
      for (const Selection& selection : found) natives.insert(selection.natives.begin(), selection.natives.end());
      check_algorithms(options_, natives);
      const auto [usual, drills] = chosen();
      std::vector<Portion> portions = schedule_all(usual, found);
      // Drills start ranks of their own, as many as they want.
      std::vector<Selection> of_drills = found;
      for (Selection& selection : of_drills) {
        selection.ranks = options_.ranks.value_or(default_ranks(options_));
        if (tools::moves_device_memory(selection.backends.front()))
          std::erase_if(selection.ranks, [&](int ranks) { return ranks > results.gpus.front().of_host; });
      }
      for (Portion& portion : schedule_all(drills, of_drills)) portions.push_back(std::move(portion));
      run_portions(portions, results);
      if (options_.soak > Duration::zero()) run_until(deadline, found, results);
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
