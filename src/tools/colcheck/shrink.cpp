#include "colcheck/shrink.hpp"

#include <algorithm>
#include <utility>

namespace col::colcheck {
namespace {

template <class Change>
void propose(std::vector<Case>& proposals, const Case& c, Change change) {
  Case simpler = c;
  change(simpler);
  if (simpler.root >= simpler.ranks) simpler.root = simpler.ranks - 1;
  if (simpler != c && std::find(proposals.begin(), proposals.end(), simpler) == proposals.end())
    proposals.push_back(std::move(simpler));
}

}  // namespace

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
