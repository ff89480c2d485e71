#include "launch/report.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <array>

#include <fmt/format.h>

#include "launch/signals.hpp"

namespace col::launch {
namespace {

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

template <typename Predicate>
std::vector<int> ranks_where(const JobResult& result, Predicate matches) {
  std::vector<int> ranks;
  for (std::size_t rank = 0; rank < result.ranks.size(); ++rank) {
    if (matches(result.ranks[rank])) ranks.push_back(static_cast<int>(rank));
  }
  return ranks;
}

}  // namespace

std::string describe_wait_status(int wait_status) {
  if (WIFSIGNALED(wait_status)) return fmt::format("was killed by {}", signal_name(WTERMSIG(wait_status)));
  return fmt::format("exited with code {}", WEXITSTATUS(wait_status));
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

std::vector<std::string> report_lines(const JobResult& result, std::string_view tool,
                                      const std::optional<RankError>& culprit_error) {
  std::vector<std::string> lines;
  const auto add = [&](std::string text) { lines.push_back(fmt::format("{}: {}", tool, text)); };
  if (result.culprit >= 0) {
    const RankStatus& rank = result.ranks[static_cast<std::size_t>(result.culprit)];
    add(fmt::format("rank {} (pid {}, host {}) {} after {:.1f} s", result.culprit, rank.pid, host_name(),
                    describe_wait_status(rank.wait_status), rank.seconds));
    if (culprit_error) {
      add(fmt::format("rank {} said {}{}{}", result.culprit, culprit_error->code,
                      culprit_error->message.empty() ? "" : ": ", culprit_error->message));
    }
  }
  if (result.signal != 0) add(fmt::format("interrupted by {}", signal_name(result.signal)));
  const std::vector<int> late =
      ranks_where(result, [](const RankStatus& rank) { return rank.pid != 0 && rank.ended_late; });
  if (!late.empty()) {
    add(fmt::format("ended {}{} {} ({})", late.size(), result.culprit >= 0 ? " other" : "",
                    late.size() == 1 ? "rank" : "ranks", name_ranks(late)));
  }
  const std::vector<int> unborn = ranks_where(result, [](const RankStatus& rank) { return rank.pid == 0; });
  if (!unborn.empty()) add(fmt::format("did not start {} any more", name_ranks(unborn)));
  const std::vector<int> stubborn =
      ranks_where(result, [](const RankStatus& rank) { return rank.pid != 0 && rank.needed_kill; });
  if (!stubborn.empty()) {
    add(fmt::format("{} did not end when told to and had to be killed", name_ranks(stubborn)));
  }
  const std::vector<int> alive =
      ranks_where(result, [](const RankStatus& rank) { return rank.pid != 0 && !rank.exited; });
  if (!alive.empty()) {
    add(fmt::format("{} survived SIGKILL: stuck in the kernel; look at the file systems and devices of this host",
                    name_ranks(alive)));
  }
  return lines;
}

}  // namespace col::launch
