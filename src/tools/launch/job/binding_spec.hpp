// Which processors and devices each rank of a node should use.
#pragma once

#include <string>
#include <vector>

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

}  // namespace col::launch
