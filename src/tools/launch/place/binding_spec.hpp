// Which processors and devices each rank of a node is to use.
#pragma once

#include <string>
#include <vector>

namespace col::launch {

struct BindingSpec {
  enum class To { none, core, numa, list } to = To::none;
  // With To::list: the processors of local rank 0, 1, …, as the operating system numbers them; begun again at its end
  // when there are more ranks.
  std::vector<std::vector<int>> lists = {};
  // How ranks are dealt out to NUMA nodes: one after the other on the first until it is full, or in turns.
  enum class MapBy { core, numa } map_by = MapBy::core;
  int gpus_per_rank = 0;  // 0: CUDA_VISIBLE_DEVICES is left alone
};

}  // namespace col::launch
