#include "launch/report.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>  // join

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

// "3 other ranks"
std::string count_ranks(std::size_t count, bool other) {
  return fmt::format("{}{} {}", count, other ? " other" : "", count == 1 ? "rank" : "ranks");
}

std::string describe_walked_out(const JobResult& result) {
  const std::vector<int> ranks = ranks_where(result, [](const RankStatus& rank) { return rank.walked_out; });
  if (ranks.empty()) return "";
  return fmt::format("{} exited with code 0 without col::finalize() while others were waiting for {}",
                     name_ranks(ranks), ranks.size() == 1 ? "it" : "them");
}

// What became of the ranks that are not the culprit. Those that ended in a way of their own are not mentioned.
std::string describe_others(const JobResult& result) {
  const bool other = result.culprit >= 0;
  const RankStatus* culprit = other ? &result.ranks[static_cast<std::size_t>(result.culprit)] : nullptr;
  const std::vector<int> ended =
      ranks_where(result, [&](const RankStatus& rank) { return &rank != culprit && rank.told_to_end; });
  const std::vector<int> collateral = ranks_where(
      result, [&](const RankStatus& rank) { return &rank != culprit && !rank.told_to_end && rank.collateral; });
  const std::vector<int> unborn = ranks_where(result, [](const RankStatus& rank) { return rank.pid == 0; });
  std::vector<std::string> parts;
  if (!collateral.empty()) {
    parts.push_back(fmt::format("{} failed {} ({})", count_ranks(collateral.size(), other),
                                culprit != nullptr && culprit->collateral ? "likewise" : "because of it",
                                name_ranks(collateral)));
  }
  if (!ended.empty()) {
    parts.push_back(fmt::format("ended {} ({})", count_ranks(ended.size(), other), name_ranks(ended)));
  }
  if (!unborn.empty()) parts.push_back(fmt::format("did not start {} any more", name_ranks(unborn)));
  return fmt::format("{}", fmt::join(parts, "; "));
}

// Those that SIGKILL was needed for.
std::string describe_stubborn(const JobResult& result) {
  const std::vector<int> killed = ranks_where(result, [](const RankStatus& rank) { return rank.needed_kill; });
  const std::vector<int> alive =
      ranks_where(result, [](const RankStatus& rank) { return rank.pid != 0 && !rank.exited; });
  std::vector<std::string> parts;
  if (!killed.empty()) {
    parts.push_back(fmt::format("{} did not end when told to and had to be killed", name_ranks(killed)));
  }
  if (!alive.empty()) {
    parts.push_back(
        fmt::format("{} survived SIGKILL: stuck in the kernel; look at the file systems and devices of "
                    "this host",
                    name_ranks(alive)));
  }
  return fmt::format("{}", fmt::join(parts, "; "));
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
  const auto add = [&](const std::string& text) {
    if (!text.empty()) lines.push_back(fmt::format("{}: {}", tool, text));
  };
  if (result.culprit >= 0) {
    const RankStatus& culprit = result.ranks[static_cast<std::size_t>(result.culprit)];
    const std::string walked_out = culprit.collateral ? describe_walked_out(result) : "";
    add(walked_out);
    add(fmt::format("rank {} (pid {}, host {}) {} after {:.1f} s", result.culprit, culprit.pid, host_name(),
                    describe_wait_status(culprit.wait_status), culprit.seconds));
    // That it lost a peer says less than which one, and how.
    if (culprit_error && walked_out.empty()) {
      add(fmt::format("rank {} said {}{}{}", result.culprit, culprit_error->code,
                      culprit_error->message.empty() ? "" : ": ", culprit_error->message));
    }
  }
  if (result.signal != 0) add(fmt::format("interrupted by {}", signal_name(result.signal)));
  add(describe_others(result));
  add(describe_stubborn(result));
  return lines;
}

}  // namespace col::launch
