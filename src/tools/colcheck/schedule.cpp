#include "colcheck/schedule.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include <col/select.hpp>

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
  const bool by_nccl =
      std::find(selection.backends.begin(), selection.backends.end(), "nccl") != selection.backends.end();
  std::vector<Case> cases;
  if (property.on_gpus == OnGpus::nothing || (property.on_gpus == OnGpus::results && !by_nccl)) return cases;
  property.cases(selection, cases);
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

}  // namespace

std::vector<Portion> schedule(std::span<const Property* const> properties, const Selection& selection) {
  using Key = std::tuple<int, Devices, std::string, int>;
  std::map<Key, Portion> worlds;
  for (const Property* property : properties) {
    std::vector<Case> cases;
    if (selection.is_about_gpus())
      cases = cases_on_gpus(*property, selection);
    else
      property->cases(selection, cases);
    for (Case& c : cases) {
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

}  // namespace col::colcheck
