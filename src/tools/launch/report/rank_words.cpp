#include "launch/report/rank_words.hpp"

#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>  // join

#include "common/text.hpp"
#include "launch/processes/signals.hpp"
#include "launch/report/wait_graph.hpp"
#include "launch/report/why.hpp"

namespace col::launch {
namespace {

using State = RankActivity::State;

bool is_out_of_time(const RankStory& rank) {
  return rank.said && rank.said->code == "timeout";
}

// A report of a big job stays readable.
constexpr std::size_t kMaxLines = 8;
constexpr std::size_t kMaxSentences = 6;

// It had ended when the job began to: so what its record says is what it died of, or in.
bool had_ended(const RankStory& rank, const JobStory& story) {
  if (!rank.status.exited) return false;
  return rank.rank == story.result.culprit || (!rank.status.told_to_end && !rank.status.collateral);
}

std::string name_last(const RankActivity& activity) {
  return activity.sequence == 0 && !is_message(activity) ? "nothing yet" : name_call(activity);
}

// Sentences about ranks, one for all those that it is true of, in the order in which they were first said.
class Sentences {
 public:
  void add(int rank, const std::string& one, const std::string& many) {
    const auto found = std::ranges::find_if(entries_, [&](const Entry& entry) { return entry.one == one; });
    if (found != entries_.end())
      found->ranks.push_back(rank);
    else
      entries_.push_back({one, many, {rank}});
  }
  bool empty() const { return entries_.empty(); }
  std::vector<std::string> text() const {
    std::vector<std::string> parts;
    std::size_t others = 0;
    for (const Entry& entry : entries_) {
      if (parts.size() < kMaxSentences)
        parts.push_back(name_ranks(entry.ranks) + " " + (entry.ranks.size() == 1 ? entry.one : entry.many));
      else
        others += entry.ranks.size();
    }
    if (others > 0) parts.push_back(fmt::format("of {} more see --json", tools::counted(others, "rank")));
    return parts;
  }

 private:
  struct Entry {
    std::string one, many;
    std::vector<int> ranks;
  };
  std::vector<Entry> entries_;
};

// Collectives by group and number, as ranks that disagree about the operation are best seen side by side.
using CallKey = std::tuple<std::string, std::uint64_t, std::string, std::int32_t>;

CallKey key_of(const RankActivity& activity) {
  const bool message = is_message(activity);
  return {activity.group, activity.sequence, activity.op, message ? activity.peer : -1};
}

struct RanksInCall {
  const RankActivity* activity = nullptr;
  std::vector<const RankStory*> ranks;   // that are in it
  std::vector<const RankStory*> behind;  // ranks that have not come to it
};

using Calls = std::map<CallKey, RanksInCall>;

Calls calls_of(const JobStory& story) {
  Calls calls;
  for (const RankStory& rank : story.ranks) {
    if (!is_in_call(rank)) continue;
    RanksInCall& call = calls[key_of(*rank.last)];
    call.activity = &*rank.last;
    call.ranks.push_back(&rank);
  }
  return calls;
}

// The first collective that ranks of its group are in and that this rank has not called; null if there is none.
RanksInCall* missed_call(const RankStory& rank, Calls& calls) {
  for (auto& [key, call] : calls) {
    if (!is_message(*call.activity) && call.activity->group == rank.last->group &&
        call.activity->sequence > rank.last->sequence)
      return &call;
  }
  return nullptr;
}

// "it" in all sentences but the first, which names the call.
void say_who_is_in(const RanksInCall& call, const JobStory& story, Sentences& sentences) {
  const RankActivity& activity = *call.activity;
  const std::string name =
      is_message(activity) && activity.peer >= 0
          ? fmt::format("{} for rank {} of {}", name_call(activity), activity.peer, name_group(activity))
          : fmt::format("{} of {}", name_call(activity), name_group(activity));
  // Those that wait come first: they are the victims of a hang, and most.
  std::vector<const RankStory*> waiting, running, ended;
  for (const RankStory* rank : call.ranks)
    (had_ended(*rank, story) ? ended : rank->last->state == State::waiting ? waiting : running).push_back(rank);
  std::string what = name;
  for (const RankStory* rank : waiting)
    sentences.add(rank->rank, fmt::format("waits in {}", what), fmt::format("wait in {}", what));
  if (!waiting.empty()) what = "it";
  const std::string_view not_waiting = waiting.empty() ? "" : " and not waiting";
  for (const RankStory* rank : running)
    sentences.add(rank->rank, fmt::format("is in {}{}", what, not_waiting),
                  fmt::format("are in {}{}", what, not_waiting));
  if (!running.empty()) what = "it";
  for (const RankStory* rank : ended)
    sentences.add(rank->rank, fmt::format("was in {} when it ended", what),
                  fmt::format("were in {} when they ended", what));
}

// True if all that are in a collective have called it, and all before it, in the same way, as far as that is known: of
// a rank that has just come to it, it is not.
bool agree(const RanksInCall& call) {
  if (is_message(*call.activity)) return true;
  std::uint64_t first = 0;
  for (const RankStory* rank : call.ranks) {
    const std::uint64_t fingerprint = rank->last->fingerprint;
    if (fingerprint != 0 && first != 0 && fingerprint != first) return false;
    if (first == 0) first = fingerprint;
  }
  return true;
}

std::string describe_ranks_in(const RanksInCall& call, const JobStory& story) {
  Sentences sentences;
  say_who_is_in(call, story, sentences);
  for (const RankStory* rank : call.behind) {
    const std::string last = name_last(*rank->last);
    const bool ended = had_ended(*rank, story);
    sentences.add(rank->rank, fmt::format("{} not called it (last: {})", ended ? "had" : "has", last),
                  fmt::format("{} not called it (last: {})", ended ? "had" : "have", last));
  }
  std::vector<std::string> parts = sentences.text();
  if (!agree(call)) parts.emplace_back("they differ in what they called, here or before");
  return fmt::format("{}", fmt::join(parts, "; "));
}

// A rank that is in no call, and whose last call says nothing about those of others.
void say_where_it_is(const RankStory& rank, const JobStory& story, Sentences& sentences) {
  const bool ended = had_ended(rank, story);
  if (!rank.last || rank.last->state == State::absent) {
    if (!ended && rank.status.pid != 0 && story.result.cause != EndCause::node_lost)
      sentences.add(rank.rank, "does not use col, or not yet", "do not use col, or not yet");
    return;
  }
  const RankActivity& activity = *rank.last;
  if (activity.state == State::finished)
    return sentences.add(rank.rank, "has left by col::finalize()", "have left by col::finalize()");
  const std::string_view one = ended ? "was" : "is", many = ended ? "were" : "are";
  const std::string last =
      activity.op.empty() ? "nothing yet" : fmt::format("{} of {}", name_last(activity), name_group(activity));
  sentences.add(rank.rank, fmt::format("{} in no call (last: {})", one, last),
                fmt::format("{} in no call (last: {})", many, last));
}

}  // namespace

std::string name_call(const RankActivity& activity) {
  const std::string op = tools::one_line(activity.op);
  return is_message(activity) || activity.sequence == 0 ? op : fmt::format("{} #{}", op, activity.sequence);
}

std::string name_group(const RankActivity& activity) {
  return fmt::format("group '{}'", tools::one_line(activity.group));
}

bool is_in_call(const RankStory& rank) {
  return rank.last && (rank.last->state == State::running || rank.last->state == State::waiting) &&
         !rank.last->op.empty();
}

// What is over may have been brief, and then only the recorder knows its label. The recorder was read a moment later:
// others may have followed there, and so many that the call itself is gone.
std::string label_of(const RankStory& rank) {
  if (!rank.last) return "";
  if (!rank.last->names.label.empty()) return rank.last->names.label;
  const RecordedCall* found = nullptr;
  for (const RecordedCall& call : rank.history.calls) {
    if (call.group != rank.last->group || call.sequence < rank.last->sequence) continue;
    if (found == nullptr || call.sequence == rank.last->sequence) found = &call;
  }
  return found == nullptr ? "" : found->names.label;
}

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
  return (ranks.size() == 1 ? "rank " : "ranks ") + tools::ranges_text(ranks);
}

std::string command_of(const JobStory& story) {
  std::vector<std::string> words = story.command_line;
  if (!words.empty()) words.front().erase(0, words.front().rfind('/') + 1);
  return tools::shell_line(words);
}

std::string name_silent_node(const SilentNode& node) {
  std::vector<int> ranks(static_cast<std::size_t>(std::max(node.ranks, 0)));
  std::iota(ranks.begin(), ranks.end(), node.first_rank);
  const std::string what = ranks.empty() ? "" : ", " + name_ranks(ranks);
  if (node.host.empty())
    return fmt::format("node {}{}", node.node_rank, ranks.empty() ? "" : " (" + name_ranks(ranks) + ")");
  return fmt::format("host {} (node {}{})", tools::one_line(node.host), node.node_rank, what);
}

std::string describe_bytes(std::uint64_t bytes) {
  constexpr std::array<std::string_view, 4> kUnits = {"KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  for (; value >= 1023.5 && unit + 1 < kUnits.size(); ++unit) value /= 1024;
  return value < 99.95 && unit > 0 ? fmt::format("{:.1f} {}", value, kUnits[unit])
                                   : fmt::format("{:.0f} {}", value, kUnits[unit]);
}

const RankStory* failure_that_counts(const std::vector<RankStory>& ranks, ExitPolicy policy) {
  std::uint64_t last = 0;
  for (const RankStory& rank : ranks) last = std::max(last, rank.epoch.value_or(0));
  const RankStory* found = nullptr;
  const auto counts_more = [&](const RankStory& one) {
    if (found == nullptr) return true;
    const bool is_own = failed_on_its_own(one.status), is_found_own = failed_on_its_own(found->status);
    if (is_own != is_found_own) return is_own;
    if (policy == ExitPolicy::max) return exit_code_of(one.status) > exit_code_of(found->status);
    const auto end = [](const RankStatus& status) { return status.started + status.seconds; };
    return end(one.status) < end(found->status);
  };
  for (const RankStory& rank : ranks) {
    if (rank.is_spare || rank.epoch.value_or(0) != last || !rank.status.exited) continue;
    if (rank.status.wait_status == 0 || rank.status.told_to_end) continue;
    if (policy == ExitPolicy::rank0 && rank.rank == 0 && !rank.status.collateral) return &rank;
    if (counts_more(rank)) found = &rank;
  }
  return found;
}

void apply_exit_policy(JobResult& result, const std::vector<RankStory>& ranks, ExitPolicy policy) {
  if (result.culprit < 0) return;
  const RankStory* found = nullptr;
  for (const RankStory& rank : ranks) {
    if (rank.rank == result.culprit && rank.status.exited) found = &rank;
  }
  for (const RankStory& rank : ranks) {
    if (!rank.status.exited || rank.status.told_to_end || rank.status.collateral) continue;
    const bool is_higher = exit_code_of(rank.status) > (found == nullptr ? 0 : exit_code_of(found->status));
    if (policy == ExitPolicy::max ? is_higher : policy == ExitPolicy::rank0 && rank.rank == 0) found = &rank;
  }
  if (found == nullptr) return;
  if (policy == ExitPolicy::max) result.culprit = found->rank;
  if (result.cause == EndCause::rank_failed) result.exit_code = exit_code_of(found->status);
}

bool failed_on_its_own(const RankStatus& status) {
  return status.exited && status.wait_status != 0 && !status.collateral && !status.told_to_end;
}

namespace {

// Nothing if the job ended for another reason than that ranks waited for too long.
std::optional<Why> why_too_long(const JobStory& story) {
  const bool lasted = story.result.cause == EndCause::timed_out || story.result.cause == EndCause::exit_timed_out;
  const bool gave_up =
      story.result.cause == EndCause::rank_failed && std::ranges::any_of(story.ranks, [&](const RankStory& rank) {
        return rank.rank == story.result.culprit && is_out_of_time(rank);
      });
  if (!lasted && !gave_up) return std::nullopt;
  Why found = why(story);
  return found.culprits.empty() || found.cause == Why::Cause::dead ? std::nullopt : std::optional(std::move(found));
}

}  // namespace

std::string why_it_hung(const JobStory& story) {
  const auto found = why_too_long(story);
  return found ? found->sentence : "";
}

const RankStory* hung_rank(const JobStory& story) {
  const auto found = why_too_long(story);
  if (!found || found->cause == Why::Cause::circle) return nullptr;
  const auto hung = std::ranges::find(story.ranks, found->culprits.front(), &RankStory::rank);
  return hung != story.ranks.end() ? &*hung : nullptr;
}

int blamed_rank(const JobStory& story) {
  const RankStory* const hung = hung_rank(story);
  return hung != nullptr ? hung->rank : story.result.culprit;
}

std::vector<std::string> describe_calls(const JobStory& story) {
  Calls calls = calls_of(story);
  const EndCause cause = story.result.cause;
  const bool lasted = cause == EndCause::timed_out || cause == EndCause::exit_timed_out;
  const bool uses_col = std::ranges::any_of(
      story.ranks, [](const RankStory& rank) { return rank.last && rank.last->state != State::absent; });
  if (calls.empty() && !(lasted && uses_col)) return {};
  Sentences elsewhere;
  for (const RankStory& rank : story.ranks) {
    if (is_in_call(rank)) continue;
    const bool comparable = rank.last && rank.last->state == State::joined && !rank.last->op.empty();
    if (RanksInCall* missed = comparable ? missed_call(rank, calls) : nullptr)
      missed->behind.push_back(&rank);
    else
      say_where_it_is(rank, story, elsewhere);
  }
  std::vector<std::string> lines;
  for (const auto& [key, call] : calls) lines.push_back(describe_ranks_in(call, story));
  if (lines.size() > kMaxLines) {
    const std::size_t left_out = lines.size() - kMaxLines + 1;
    lines.resize(kMaxLines - 1);
    lines.push_back(fmt::format("ranks are in {} more", tools::counted(left_out, "call")));
  }
  if (!elsewhere.empty()) lines.push_back(fmt::format("{}", fmt::join(elsewhere.text(), "; ")));
  return lines;
}

}  // namespace col::launch
