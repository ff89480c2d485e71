// Which processors and devices each rank of a node should use.
#pragma once

#include <string>
#include <vector>

#include "json/json_fields.hpp"

namespace col::launch {

struct BindingSpec {
  enum class To { none, core, numa, list } to = To::none;
  // With To::list: the processors of local rank 0, 1, …, with the numbers of the operating system. If there are more
  // ranks, the list starts again.
  std::vector<std::vector<int>> lists = {};
  // How ranks are distributed over NUMA nodes: core fills the first node, then the next one; numa takes turns.
  enum class MapBy { core, numa } map_by = MapBy::core;
  int gpus_per_rank = 0;  // 0: CUDA_VISIBLE_DEVICES is not changed
};

template <class Visit>
void fields(BindingSpec& binding, Visit& visit) {
  auto& [to, lists, map_by, gpus_per_rank] = binding;
  visit("to", to, core::Numbered{BindingSpec::To::list});
  visit("lists", lists);
  visit("map_by", map_by, core::Numbered{BindingSpec::MapBy::numa});
  visit("gpus_per_rank", gpus_per_rank);
}

}  // namespace col::launch
