#include "colcheck/run.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include <col/select.hpp>

#include "common/gpu.hpp"

namespace col::colcheck {
namespace {

constexpr std::size_t kPortion = 300;

// Where a kind comes in the order of the run.
int place_of(Property::Kind kind) {
  return kind == Property::Kind::alone ? 0 : kind == Property::Kind::group ? 1 : 2;
}

// By an algorithm that the host runs, whatever the group's backend.
bool runs_on_host(const Case& c) {
  const auto collective = collective_of(c.primitive);
  return collective && !c.algorithm.empty() &&
         find_algorithm(*collective, AlgorithmSpec::parse(c.algorithm).name) != nullptr;
}

// What the selection asks for on GPUs.
std::vector<Case> cases_on_gpus(const Property& property, const Selection& selection) {
  const bool by_nccl = std::any_of(selection.backends.begin(), selection.backends.end(), tools::moves_device_memory);
  if (property.on_gpus == OnGpus::nothing || (property.on_gpus == OnGpus::results && !by_nccl)) return {};
  std::vector<Case> cases = cases_of(property, selection);
  if (property.on_gpus == OnGpus::results) {
    std::erase_if(cases, [](const Case& c) { return runs_on_host(c); });
    return cases;
  }
  std::vector<Case> placed;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    for (std::size_t d = 0; d < selection.devices.size(); ++d) {
      if (selection.effort == Effort::quick && d != i % selection.devices.size()) continue;
      Case c = cases[i];
      c.devices = selection.devices[d];
      if (!has_one_result(c)) c.op = Operator::sum;
      placed.push_back(std::move(c));
    }
  }
  return placed;
}

template <class Change>
void propose(std::vector<Case>& proposals, const Case& c, Change change) {
  Case simpler = c;
  change(simpler);
  if (simpler.root >= simpler.ranks) simpler.root = simpler.ranks - 1;
  if (simpler != c && std::find(proposals.begin(), proposals.end(), simpler) == proposals.end())
    proposals.push_back(std::move(simpler));
}

}  // namespace

std::vector<Portion> schedule(std::span<const Property* const> properties, const Selection& selection) {
  using Key = std::tuple<int, Devices, std::string, int>;
  std::map<Key, Portion> worlds;
  for (const Property* property : properties) {
    for (Case& c : selection.is_about_gpus() ? cases_on_gpus(*property, selection) : cases_of(*property, selection)) {
      // Drills make their own groups.
      const bool grouped = property->kind == Property::Kind::group;
      const Key key(place_of(property->kind), grouped ? c.devices : Devices::cpu, grouped ? c.backend : std::string(),
                    grouped ? c.ranks : 0);
      Portion& portion = worlds.try_emplace(key, Portion{property->kind, {}}).first->second;
      portion.cases.push_back(std::move(c));
    }
  }
  std::vector<Portion> portions;
  for (auto& [key, portion] : worlds) {
    for (std::size_t begin = 0; begin < portion.cases.size(); begin += kPortion) {
      const auto first = portion.cases.begin() + static_cast<std::ptrdiff_t>(begin);
      const auto count = std::min(kPortion, portion.cases.size() - begin);
      portions.push_back({portion.kind, {first, first + static_cast<std::ptrdiff_t>(count)}});
    }
  }
  return portions;
}

// ---- Smaller cases

std::vector<Case> simpler(const Case& c) {
  std::vector<Case> all;
  for (const int ranks : {2, 3, 4, c.ranks / 2, c.ranks - 1}) {
    if (ranks >= 1 && ranks < c.ranks) propose(all, c, [&](Case& s) { s.ranks = ranks; });
  }
  for (const std::size_t count : {std::size_t{0}, std::size_t{1}, c.count / 2, c.count - 1}) {
    if (count < c.count) propose(all, c, [&](Case& s) { s.count = count; });
  }
  if (c.root != 0) propose(all, c, [](Case& s) { s.root = 0; });
  // What else a case says may be what its property is about; only these run any case there is.
  if (c.property != "exact") return all;
  if (c.devices != Devices::cpu) propose(all, c, [](Case& s) { s.devices = Devices::cpu; });
  if (c.asynchronous) propose(all, c, [](Case& s) { s.asynchronous = false; });
  if (c.in_place) propose(all, c, [](Case& s) { s.in_place = false; });
  if (c.placement != Placement::margins) propose(all, c, [](Case& s) { s.placement = Placement::margins; });
  if (!c.algorithm.empty()) propose(all, c, [](Case& s) { s.algorithm.clear(); });
  if (c.tag != 0) propose(all, c, [](Case& s) { s.tag = 0; });
  if (is_reduction(c.primitive) && c.op != Operator::sum) propose(all, c, [](Case& s) { s.op = Operator::sum; });
  if (c.dtype != DType::int32 && c.primitive != Primitive::barrier)
    propose(all, c, [](Case& s) { s.dtype = DType::int32; });
  return all;
}

std::optional<CaseResult> shrink(const Case& c, int most_tries,
                                 const std::function<std::optional<CaseResult>(const Case&)>& fails) {
  std::optional<CaseResult> smallest;
  Case current = c;
  for (bool smaller = true; smaller && most_tries > 0;) {
    smaller = false;
    for (const Case& candidate : simpler(current)) {
      if (most_tries-- <= 0) break;
      std::optional<CaseResult> result = fails(candidate);
      if (!result) continue;
      smallest = std::move(result);
      current = candidate;
      smaller = true;
      break;
    }
  }
  return smallest;
}

}  // namespace col::colcheck
