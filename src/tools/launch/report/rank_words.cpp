#include "launch/report/rank_words.hpp"

#include <sys/wait.h>

#include <array>
#include <string_view>

#include <fmt/format.h>

#include "launch/processes/signals.hpp"

namespace col::launch {

std::string describe_wait_status(int wait_status) {
  if (WIFSIGNALED(wait_status)) return fmt::format("was killed by {}", signal_name(WTERMSIG(wait_status)));
  return fmt::format("exited with code {}", WEXITSTATUS(wait_status));
}

std::string describe_status(const RankStatus& status) {
  const std::string how = describe_wait_status(status.wait_status);
  if (!status.out_of_memory) return how;
  return fmt::format("{}: out of memory (peak RSS {})", how, describe_bytes(status.peak_rss_bytes));
}

std::string name_ranks(const std::vector<int>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t first = 0, last = 0; first < ranks.size(); first = last + 1) {
    last = first;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    if (first > 0) text += ", ";
    text += fmt::to_string(ranks[first]);
    if (last > first) text += fmt::format("-{}", ranks[last]);
  }
  return text;
}

std::string describe_bytes(std::uint64_t bytes) {
  constexpr std::array<std::string_view, 4> kUnits = {"KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  for (; value >= 1023.5 && unit + 1 < kUnits.size(); ++unit) value /= 1024;
  return value < 99.95 && unit > 0 ? fmt::format("{:.1f} {}", value, kUnits[unit])
                                   : fmt::format("{:.0f} {}", value, kUnits[unit]);
}

bool failed_on_its_own(const RankStatus& status) {
  return status.exited && status.wait_status != 0 && !status.collateral && !status.told_to_end;
}

}  // namespace col::launch
