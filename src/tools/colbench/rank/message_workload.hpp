// Messages between pairs of ranks as a workload: pingpong, oneway, bidirectional.
#pragma once

#include <memory>
#include <optional>

#include "colbench/rank/collective_workload.hpp"

namespace col::colbench {

// The partner of `rank`, and which of the two begins; nothing for a rank without a partner. spec.groups: "pairs" 0 with
// 1, 2 with 3, …; "bisect" i with i + p/2; "bisect:D" i with i + D, where bit D of i is not set; empty: spec.pair, else
// rank 0 with the last rank.
struct Partner {
  int rank = 0;
  bool begins = false;
};
std::optional<Partner> partner_of(const CellSpec& spec, int rank, int size);

// `setup.group` is the group of all ranks.
std::unique_ptr<Workload> make_message_workload(const WorkloadSetup& setup);

}  // namespace col::colbench
