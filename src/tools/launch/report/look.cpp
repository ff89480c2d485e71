#include "launch/report/look.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "core/clock/clock.hpp"
#include "launch/job/assignment.hpp"

namespace col::launch {
namespace {

// The words of a process's command line; empty if it is gone.
std::vector<std::string> command_line_of(std::int64_t pid) {
  std::ifstream file(fmt::format("/proc/{}/cmdline", pid), std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  std::vector<std::string> words;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\0', at), text.size());
    words.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

// "VmRSS:	  123 kB", in bytes; nothing if the line is another one.
std::optional<std::uint64_t> bytes_in(std::string_view line, std::string_view name) {
  if (!line.starts_with(name)) return std::nullopt;
  std::uint64_t kib = 0;
  const std::size_t digit = line.find_first_of("0123456789");
  if (digit == std::string_view::npos) return std::nullopt;
  std::from_chars(line.data() + digit, line.data() + line.size(), kib);
  return kib * 1024;
}

Burden burden_of(std::int64_t pid) {
  Burden burden;
  std::ifstream file(fmt::format("/proc/{}/status", pid));
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("State:")) burden.waits_for_disk = line.find("D (") != std::string::npos;
    if (const auto bytes = bytes_in(line, "VmRSS:")) burden.resident_bytes = *bytes;
    if (const auto bytes = bytes_in(line, "VmSwap:")) burden.swapped_bytes = *bytes;
  }
  return burden;
}

}  // namespace

bool lives(const ControlPage& page) {
  if (page.maker_lives()) return true;
  const std::vector<RankActivity> all = page.activities();
  return std::ranges::any_of(
      all, [](const RankActivity& one) { return !one.gone && one.state != RankActivity::State::finished; });
}

void look_at_ranks(const ControlPage& page, std::vector<RankStory>& ranks, std::size_t most_calls) {
  const std::vector<RankActivity> all = page.activities();
  const std::uint64_t now = core::clock_ns();
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const RankRecord& record = page.record(static_cast<int>(i));
    const std::int64_t holder = record.read().pid;
    const auto found = std::ranges::find_if(all, [&](const RankActivity& one) { return one.pid == holder; });
    if (found == all.end()) {
      // All that is worth a word of a rank that has not joined.
      const auto started = record.process();
      if (!started || !started->stopped) continue;
      ranks[i].last.emplace();
      ranks[i].last->rank = started->rank;
      ranks[i].last->stopped = true;
      continue;
    }
    ranks[i].last = *found;
    ranks[i].seen_ns = now;
    ranks[i].history = record.history(most_calls);
    if (found->state != RankActivity::State::waiting && !found->gone && !found->stopped)
      ranks[i].burden = burden_of(found->pid);
  }
}

JobStory look_at_job(const ControlPage& page, std::string job_id, std::size_t most_calls) {
  JobStory story;
  story.tool = "coljob";
  story.job_id = std::move(job_id);
  story.started_at = page.made_at();
  story.seconds = std::chrono::duration<double>(core::wall_now() - page.made_at()).count();
  story.ranks.resize(static_cast<std::size_t>(page.local_ranks()));
  look_at_ranks(page, story.ranks, most_calls);
  const std::string host = host_name();
  for (std::size_t i = 0; i < story.ranks.size(); ++i) {
    RankStory& rank = story.ranks[i];
    rank.local_rank = static_cast<int>(i);
    rank.host = host;
    rank.rank = rank.last ? rank.last->rank : static_cast<int>(i);
    if (rank.last) rank.status.pid = static_cast<pid_t>(rank.last->pid);
    if (const auto started = page.record(static_cast<int>(i)).process()) {
      rank.rank = started->rank;
      rank.status.pid = static_cast<pid_t>(started->pid);
      rank.status.exited = started->wait_status.has_value();
      rank.status.wait_status = started->wait_status.value_or(0);
    }
    if (story.command_line.empty() && rank.status.pid != 0 && !rank.status.exited)
      story.command_line = command_line_of(rank.status.pid);
  }
  std::ranges::sort(story.ranks, {}, &RankStory::rank);
  return story;
}

}  // namespace col::launch
