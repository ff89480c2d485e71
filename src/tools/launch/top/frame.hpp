// One picture of a running job in a terminal of a given size. A pure function: what it shows, others have looked up.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "common/style.hpp"
#include "launch/report/job_story.hpp"
#include "launch/report/wait_graph.hpp"
#include "launch/report/why.hpp"
#include "launch/top/rates.hpp"

namespace col::launch {

// In which order ranks stand. by_interest: by number as long as all have room, else those first that others wait for.
enum class SortBy { interest, rank, calls, waiting, cpu, memory };
std::string_view to_string(SortBy by) noexcept;
SortBy next(SortBy by) noexcept;

struct FrameOptions {
  std::size_t columns = 80;
  std::size_t lines = 24;  // 0: as many as there are ranks, and no line about keys
  tools::Style style = {};
  SortBy sort = SortBy::interest;
  bool paused = false;
  std::string note = {};                  // in place of the keys
  std::vector<std::string> notices = {};  // below the sentence: of hosts that do not answer
  double patience = 2;                    // seconds; a wait that has lasted for longer is a hang
};

// The ranks as they stand in the frame, as indices of the graph's.
std::vector<std::size_t> order_of_ranks(const WaitGraph& graph, const Why& found, const std::vector<RankRates>& rates,
                                        SortBy sort, bool all_have_room);

// Lines without their ends, none wider than the terminal, and not more than it has. Requires: as many rates as ranks.
std::vector<std::string> draw_frame(const JobStory& story, const Why& found, const std::vector<RankRates>& rates,
                                    const FrameOptions& options);

}  // namespace col::launch
