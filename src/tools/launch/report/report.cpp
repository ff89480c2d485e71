#include "launch/report/report.hpp"

#include <sys/wait.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>  // join

#include "common/text.hpp"
#include "launch/processes/signals.hpp"
#include "launch/report/rank_words.hpp"
#include "launch/report/stacks.hpp"

namespace col::launch {
namespace {

// With more hosts in a sentence, ranks alone are named.
constexpr std::size_t kMaxHosts = 4;
// With more, statuses of ranks that failed on their own are left to the JSON.
constexpr std::size_t kMaxStatuses = 4;

// A line of a rank as a terminal would show it at last: without colours, and without what a carriage return took back.
std::string settled(std::string_view line) {
  std::string plain;
  while (!line.empty()) {
    if (line.starts_with("\x1b[")) {
      line.remove_prefix(2);
      while (!line.empty() && (line.front() < '@' || line.front() > '~')) line.remove_prefix(1);
      line.remove_prefix(line.empty() ? 0 : 1);
      continue;
    }
    if (line.front() == '\r' && line.size() > 1)
      plain.clear();
    else if (line.front() != '\r')
      plain += line.front() == '\n' ? ' ' : line.front();
    line.remove_prefix(1);
  }
  return plain;
}

// The exception that ended a Python program, as the last traceback of its stderr names it: "ValueError: no such thing".
// Empty if there is none. The lines of a frame are indented, and the exception follows the innermost one.
std::string python_exception(const std::vector<std::string>& lines) {
  const auto is_frame = [](const std::string& line) { return line.starts_with("  File \""); };
  const auto frame = std::find_if(lines.rbegin(), lines.rend(), is_frame).base();
  if (frame == lines.begin()) return "";
  const auto named = std::find_if(frame, lines.end(), [](const std::string& line) { return !line.starts_with(' '); });
  return named == lines.end() ? "" : tools::one_line(settled(*named));
}

class Report {
 public:
  Report(const JobStory& story, const ReportStyle& style) : story_(story), style_(style) {}

  std::vector<std::string> lines() {
    add_why();
    add_hung();
    add_culprit();
    add_calls();
    add(describe_others());
    add(describe_stubborn());
    if (story_.processes_left > 0) {
      add(fmt::format("{} of the job {} left and could not be killed",
                      count("process", "processes", story_.processes_left), story_.processes_left == 1 ? "is" : "are"));
    }
    add_stacks();
    return std::move(lines_);
  }
  std::vector<std::string> stacks() {
    add_stacks();
    return std::move(lines_);
  }

 private:
  void add(std::string_view text, tools::Tone tone = tools::Tone::plain);
  void add_indented(std::string_view text, std::size_t columns);
  void add_why();
  void add_hung();
  void add_calls();
  void add_culprit();
  void add_last_words(const RankStory& culprit);
  void add_stacks();
  std::string describe_walked_out() const;
  std::string describe_others() const;
  std::string describe_stubborn() const;
  std::string describe_statuses(const std::vector<int>& ranks) const;

  const RankStory* find(int rank) const;
  const RankStory* culprit() const { return story_.result.culprit >= 0 ? find(story_.result.culprit) : nullptr; }
  template <typename Predicate>
  std::vector<int> ranks_where(Predicate matches) const;
  std::string name(const std::vector<int>& ranks) const;  // with their hosts, when there are several
  std::string count_ranks(std::size_t ranks) const;
  static std::string count(std::string_view one, std::string_view many, std::size_t number) {
    return fmt::format("{} {}", tools::grouped(number), number == 1 ? one : many);
  }

  const JobStory& story_;
  const ReportStyle& style_;
  std::vector<std::string> lines_;
};

const RankStory* Report::find(int rank) const {
  // Where it is unless the stories of others are missing.
  const auto index = static_cast<std::size_t>(rank);
  if (index < story_.ranks.size() && story_.ranks[index].rank == rank) return &story_.ranks[index];
  const auto found = std::ranges::find_if(story_.ranks, [&](const RankStory& r) { return r.rank == rank; });
  return found == story_.ranks.end() ? nullptr : &*found;
}

template <typename Predicate>
std::vector<int> Report::ranks_where(Predicate matches) const {
  std::vector<int> ranks;
  for (const RankStory& rank : story_.ranks) {
    if (!rank.is_spare && matches(rank)) ranks.push_back(rank.rank);
  }
  return ranks;
}

std::string Report::name(const std::vector<int>& ranks) const {
  std::vector<std::pair<std::string, std::vector<int>>> by_host;
  for (const int rank : ranks) {
    const RankStory* story = find(rank);
    const std::string host = story != nullptr ? tools::one_line(story->host) : "";
    const auto found = std::ranges::find_if(by_host, [&](const auto& entry) { return entry.first == host; });
    if (found == by_host.end())
      by_host.push_back({host, {rank}});
    else
      found->second.push_back(rank);
  }
  if (story_.nodes <= 1 || by_host.size() > kMaxHosts) return name_ranks(ranks);
  std::vector<std::string> parts;
  for (const auto& [host, there] : by_host) parts.push_back(fmt::format("{} on {}", name_ranks(there), host));
  return fmt::format("{}", fmt::join(parts, ", "));
}

// "3 other ranks"
std::string Report::count_ranks(std::size_t ranks) const {
  return culprit() != nullptr ? count("other rank", "other ranks", ranks) : count("rank", "ranks", ranks);
}

void Report::add(std::string_view text, tools::Tone tone) {
  if (text.empty()) return;
  const std::string line = tools::clean(text, !style_.text.utf8);
  lines_.push_back(fmt::format("{}: {}", story_.tool, tools::toned(line, tone, style_.text)));
}

// `columns` is where it is cut; 0: nowhere.
void Report::add_indented(std::string_view text, std::size_t columns) {
  const std::string line = tools::clean(settled(text), !style_.text.utf8);
  const std::size_t before = story_.tool.size() + 4;
  std::string_view shown = line;
  std::string_view ending;
  if (columns > before && tools::columns_of(shown) > columns - before) {
    ending = style_.text.ellipsis();
    const std::size_t taken = tools::columns_of(ending);
    shown = tools::cut(shown, columns - before > taken ? columns - before - taken : 0);
  }
  std::string indented = fmt::format("{}:   {}{}", story_.tool, shown, ending);
  indented.erase(indented.find_last_not_of(" \t") + 1);
  lines_.push_back(std::move(indented));
}

// Why the job ended, where that is not a rank.
void Report::add_why() {
  const JobResult& result = story_.result;
  const std::string limit =
      style_.limit ? tools::in_words(std::chrono::duration<double>(*style_.limit).count()) : "its time limit";
  switch (result.cause) {
    case EndCause::timed_out:
      return add(fmt::format("the job did not end within {} (--timeout)", limit), tools::Tone::bad);
    case EndCause::exit_timed_out: {
      const std::vector<int> late = ranks_where([](const RankStory& rank) {
        return rank.status.pid != 0 && (rank.status.told_to_end || !rank.status.exited);
      });
      return add(fmt::format("{} did not end within {} after another rank had ended well (--exit-timeout)",
                             late.empty() ? "the job" : name(late), limit),
                 tools::Tone::bad);
    }
    default:
      if (result.signal != 0) add(fmt::format("interrupted by {}", signal_name(result.signal)), tools::Tone::bad);
  }
}

// Whom the others waited for, and why.
void Report::add_hung() {
  add(why_it_hung(story_), tools::Tone::bad);
}

// One line would say of one call what the sentence above has said.
void Report::add_calls() {
  if (story_.result.signal != 0) return;
  const std::vector<std::string> lines = describe_calls(story_);
  if (lines.size() == 1 && !why_it_hung(story_).empty()) return;
  for (const std::string& line : lines) add(line);
}

void Report::add_culprit() {
  const RankStory* rank = culprit();
  if (rank == nullptr) return;
  const std::string walked_out = rank->status.collateral ? describe_walked_out() : "";
  add(walked_out, tools::Tone::bad);
  const std::string exception = python_exception(rank->last_stderr);
  add(fmt::format("rank {} (pid {}, host {}) {} after {:.1f} s{}{}", rank->rank, rank->status.pid,
                  tools::one_line(rank->host), describe_status(rank->status), rank->status.seconds,
                  exception.empty() ? "" : ": ", exception),
      tools::Tone::bad);
  // That it lost a peer says less than which one, and how.
  if (rank->said && walked_out.empty()) {
    const std::string code = tools::one_line(rank->said->code), message = tools::one_line(rank->said->message);
    add(fmt::format("rank {} said {}{}{}", rank->rank, code, code.empty() || message.empty() ? "" : ": ", message));
  }
  add_last_words(*rank);
}

void Report::add_last_words(const RankStory& rank) {
  const std::size_t size = rank.last_stderr.size();
  if (size == 0) return;
  add(size == 1 ? "its last line on stderr:" : "its last lines on stderr:");
  for (std::size_t index = size - std::min(size, kStderrLines); index < size; ++index)
    add_indented(rank.last_stderr[index], 0);
}

std::string Report::describe_walked_out() const {
  const std::vector<int> ranks = ranks_where([](const RankStory& rank) { return rank.status.walked_out; });
  if (ranks.empty()) return "";
  return fmt::format("{} exited with code 0 without col::finalize() while others were waiting for {}", name(ranks),
                     ranks.size() == 1 ? "it" : "them");
}

// "rank 1: exit code 2; ranks 3-5: SIGSEGV"
std::string Report::describe_statuses(const std::vector<int>& ranks) const {
  std::map<std::string, std::vector<int>> by_status;
  for (const int rank : ranks) {
    const RankStatus& status = find(rank)->status;
    const std::string how = WIFSIGNALED(status.wait_status)
                                ? signal_name(WTERMSIG(status.wait_status))
                                : fmt::format("exit code {}", WEXITSTATUS(status.wait_status));
    by_status[how + (status.out_of_memory ? ", out of memory" : "")].push_back(rank);
  }
  if (by_status.size() > kMaxStatuses) return name(ranks);
  std::vector<std::string> parts;
  for (const auto& [how, those] : by_status) parts.push_back(fmt::format("{}: {}", name(those), how));
  return fmt::format("{}", fmt::join(parts, "; "));
}

// What became of the ranks that are not the culprit.
std::string Report::describe_others() const {
  const RankStory* cause = culprit();
  const std::vector<int> own = ranks_where(
      [&](const RankStory& rank) { return cause != nullptr && &rank != cause && failed_on_its_own(rank.status); });
  const std::vector<int> ended =
      ranks_where([&](const RankStory& rank) { return &rank != cause && rank.status.told_to_end; });
  const std::vector<int> collateral = ranks_where(
      [&](const RankStory& rank) { return &rank != cause && !rank.status.told_to_end && rank.status.collateral; });
  const std::vector<int> unborn = ranks_where([](const RankStory& rank) { return rank.status.pid == 0; });
  std::vector<std::string> parts;
  if (!own.empty())
    parts.push_back(fmt::format("{} failed, too ({})", count_ranks(own.size()), describe_statuses(own)));
  if (!collateral.empty()) {
    parts.push_back(fmt::format("{} failed {} ({})", count_ranks(collateral.size()),
                                cause == nullptr           ? "because others were ended"
                                : cause->status.collateral ? "likewise"
                                                           : "because of it",
                                name(collateral)));
  }
  if (!ended.empty()) parts.push_back(fmt::format("ended {} ({})", count_ranks(ended.size()), name(ended)));
  if (!unborn.empty()) parts.push_back(fmt::format("did not start {} any more", name(unborn)));
  return fmt::format("{}", fmt::join(parts, "; "));
}

// Those that SIGKILL was needed for.
std::string Report::describe_stubborn() const {
  const std::vector<int> killed =
      ranks_where([](const RankStory& rank) { return rank.status.needed_kill && rank.status.exited; });
  const std::vector<int> alive =
      ranks_where([](const RankStory& rank) { return rank.status.pid != 0 && !rank.status.exited; });
  std::vector<std::string> parts;
  if (!killed.empty()) parts.push_back(fmt::format("{} did not end when told to and had to be killed", name(killed)));
  if (!alive.empty()) {
    parts.push_back(fmt::format("{} survived SIGKILL: stuck in the kernel; look at the file systems and devices of {}",
                                name(alive), story_.nodes > 1 ? "those hosts" : "this host"));
  }
  return fmt::format("{}", fmt::join(parts, "; "));
}

// Ranks with the same stack share one.
// ", in 'backward'": what its call is for, or was.
std::string labelled(const RankStory& rank) {
  const std::string label = tools::one_line(label_of(rank));
  return label.empty() ? "" : fmt::format(", {} '{}'", is_in_call(rank) ? "in" : "after", label);
}

void Report::add_stacks() {
  std::vector<std::pair<std::string, std::vector<const RankStory*>>> groups;
  for (const RankStory& rank : story_.ranks) {
    if (!rank.stack || rank.stack->lines.empty()) continue;
    const std::string key = labelled(rank) + rank.stack->source + '\n' + stack_key(rank.stack->lines);
    const auto found = std::ranges::find_if(groups, [&](const auto& group) { return group.first == key; });
    if (found == groups.end())
      groups.push_back({key, {&rank}});
    else
      found->second.push_back(&rank);
  }
  for (const auto& [key, group] : groups) {
    std::vector<int> ranks;
    for (const RankStory* rank : group) ranks.push_back(rank->rank);
    add(fmt::format("stack of {} ({}){}:", name(ranks), tools::one_line(group.front()->stack->source),
                    labelled(*group.front())));
    for (const std::string& line : group.front()->stack->lines) add_indented(line, style_.columns);
  }
}

}  // namespace

std::vector<std::string> report_lines(const JobStory& story, const ReportStyle& style) {
  return Report(story, style).lines();
}

std::vector<std::string> stack_lines(const JobStory& story, const ReportStyle& style) {
  return Report(story, style).stacks();
}

}  // namespace col::launch
