#include "coljob/options.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <col/error.hpp>

#include "coljob/jobs.hpp"
#include "common/command_line.hpp"
#include "common/exit_codes.hpp"
#include "common/report.hpp"
#include "common/screen.hpp"
#include "common/text.hpp"
#include "common/write_file.hpp"
#include "json/json_text.hpp"
#include "launch/job/assignment.hpp"
#include "launch/nodes/ask_desk.hpp"
#include "launch/processes/job_directory.hpp"
#include "launch/report/look.hpp"
#include "launch/report/rank_words.hpp"
#include "launch/report/report.hpp"
#include "launch/report/report_json.hpp"
#include "launch/report/stacks.hpp"
#include "launch/report/why.hpp"
#include "launch/top/live_terminal.hpp"
#include "launch/top/view.hpp"

namespace col::coljob {
namespace {

using namespace launch;
using Command = Options::Command;

int print(const std::string& text) {
  tools::print(text);
  return tools::exit_code::kSuccess;
}

bool is_stuck(const Why& found, Duration patience) {
  using Cause = Why::Cause;
  return found.cause != Cause::nothing && found.seconds >= std::chrono::duration<double>(patience).count();
}

// "waiting", "stuck"; for a job that has no wait, what its ranks do.
std::string state_of(const JobStory& story, const Why& found, Duration patience) {
  if (is_stuck(found, patience)) return "stuck";
  if (!found.waiting.empty()) return "waiting";
  const bool is_in_call = std::ranges::any_of(
      story.ranks, [](const RankStory& rank) { return rank.last && rank.last->state == RankActivity::State::running; });
  return is_in_call ? "communicating" : "computing";
}

// Of the calls that most ranks are in, or were in last, if they have one.
std::string label_of_job(const JobStory& story) {
  std::map<std::string, int> labels;
  for (const RankStory& rank : story.ranks) ++labels[label_of(rank)];
  const auto most = std::ranges::max_element(labels, {}, [](const auto& label) { return label.second; });
  return most == labels.end() ? "" : most->first;
}

constexpr const char* kNoLauncher = "its launcher does not answer";

// What a job does: as its launcher says, who knows of all hosts, or as the control page of this host does.
class View {
 public:
  // Asks the launcher, if there is one that can be asked.
  View(const FoundJob& job, std::size_t most_calls, std::size_t calls_of_all_hosts, bool stacks)
      : most_calls_(most_calls) {
    if (!job.directory.empty() && job.lives())
      asking_ = AskingLauncher::ask(job.directory, {.calls = static_cast<int>(calls_of_all_hosts), .stacks = stacks});
  }

  // Nothing if nobody knows.
  std::optional<JobStory> take(const FoundJob& job) {
    if (asking_) {
      if (std::optional<JobStory> story = asking_->wait()) {
        story->tool = "coljob";
        return story;
      }
      std::fprintf(stderr, "coljob: job %s: its launcher on this host does not answer, so other hosts are not seen\n",
                   job.id.c_str());
    }
    if (!job.page) return std::nullopt;
    return look_at_job(*job.page, job.id, most_calls_);
  }

 private:
  std::size_t most_calls_;
  std::optional<AskingLauncher> asking_;
};

int show_jobs(const Options& options) {
  const std::vector<FoundJob> jobs = find_jobs(options.directories);
  const tools::Style style = tools::Screen::own().style();
  if (jobs.empty())
    return print(
        report_text({.notes = {{"no job of this user runs on this host; --dir names another TMPDIR"}}}, style, ""));
  constexpr std::size_t kLeastCommand = 12, kMostCommand = 60;
  tools::Table table{.columns = {{"job"},
                                 {.name = "ranks", .number = true, .goes = 1},
                                 {.name = "since", .number = true, .goes = 2},
                                 {"state"},
                                 {.name = "label", .goes = 3},
                                 {.name = "command", .least = kLeastCommand}}};
  tools::Part part;
  std::vector<View> views;  // all are asked before the first answer is waited for
  for (const FoundJob& job : jobs) views.emplace_back(job, kReportedCalls, kReportedCalls, false);
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const FoundJob& job = jobs[i];
    const std::optional<JobStory> story = job.lives() ? views[i].take(job) : std::nullopt;
    if (story) {
      const std::string state = state_of(*story, why(*story), options.patience);
      table.rows.push_back({{job.id},
                            {fmt::to_string(story->ranks.size())},
                            {tools::in_words(story->seconds)},
                            {state, state == "stuck" ? tools::Tone::bad : tools::Tone::plain},
                            {label_of_job(*story)},
                            {tools::fitted(tools::one_line(command_of(*story), !style.utf8), kMostCommand, style)}});
    } else {
      table.rows.push_back({{job.id}, {}, {}, {job.page && !job.lives() ? "ended" : "unknown"}, {}, {}});
      part.notes.push_back({fmt::format("job {}: {}", job.id, job.lives() ? kNoLauncher : job.problem)});
    }
  }
  constexpr std::ptrdiff_t kLabel = 4;
  if (std::ranges::all_of(table.rows, [](const tools::TextRow& row) { return row[kLabel].text.empty(); })) {
    table.columns.erase(table.columns.begin() + kLabel);
    for (tools::TextRow& row : table.rows) row.erase(row.begin() + kLabel);
  }
  part.tables.push_back(std::move(table));
  return print(report_text(part, style, ""));
}

// A dump, or a report; nothing if `name` is no such file.
std::optional<JobStory> read_story(const std::string& name) {
  struct stat info {};
  if (::stat(name.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return std::nullopt;
  std::ifstream file(name, std::ios::binary);
  if (file.peek() != '{') return std::nullopt;
  const nlohmann::json value = core::json_from(std::string(std::istreambuf_iterator<char>(file), {}));
  if (value.is_discarded())
    throw tools::UsageError("'{}' is no JSON; name a file of coljob dump or colrun --json", name);
  try {
    return story_from_json(value);
  } catch (const Error& error) {
    throw tools::UsageError("'{}': {}; name a file of coljob dump or colrun --json", name, error.message());
  }
}

JobStory story_of(const Options& options, std::size_t most_calls, bool stacks = false) {
  const FoundJob job = choose_job(find_jobs(options.directories), options.job);
  // An answer about a thousand ranks is to come soon, too.
  constexpr int kManyRanks = 64;
  if (options.command == Command::why && job.page && job.page->local_ranks() > kManyRanks) most_calls = kReportedCalls;
  const std::size_t of_all_hosts = options.command == Command::why ? kReportedCalls : most_calls;
  std::optional<JobStory> story = View(job, most_calls, of_all_hosts, stacks).take(job);
  if (!story) throw NoJob(fmt::format("job {} cannot be looked into: {}", job.id, kNoLauncher));
  // What a dead job has left is no hang, but may still tell what it was in.
  if (!job.problem.empty()) std::fprintf(stderr, "coljob: job %s: %s\n", job.id.c_str(), job.problem.c_str());
  return *std::move(story);
}

int explain(const Options& options) {
  std::optional<JobStory> story = options.job.empty() ? std::nullopt : read_story(options.job);
  if (!story) story = story_of(options, RankRecord::kRecordedCalls);
  const Why found = why(*story);
  const bool stuck = is_stuck(found, options.patience);
  if (options.json) {
    nlohmann::ordered_json finding = report_json(*story)["why"];
    finding["stuck"] = stuck;
    finding["job_id"] = tools::clean(story->job_id);
    print(core::json_text(finding, 2) + "\n");
  } else {
    print(report_text(why_part(*story, found), tools::Screen::own().style(), ""));
  }
  return stuck ? tools::exit_code::kStuck : tools::exit_code::kSuccess;
}

int show_stacks(const Options& options) {
  JobStory story = story_of(options, 1, /*stacks=*/true);
  // Those that a launcher has taken are there. Ranks of other hosts have numbers of processes that are others here.
  std::vector<RankStory*> ranks;
  const std::string own = host_name();
  for (RankStory& rank : story.ranks) {
    if (!rank.stack && story.nodes == 1 && (rank.host.empty() || rank.host == own)) ranks.push_back(&rank);
  }
  if (!ranks.empty()) take_stacks(ranks, ranks.size());
  ReportStyle style;
  style.text = tools::Screen::own().style();
  std::string text;
  for (const std::string& line : stack_lines(story, style)) text += line + "\n";
  if (text.empty()) text = "no rank has a stack that can be read; see kernel.yama.ptrace_scope, and coljob why\n";
  return print(text);
}

// On a terminal until its user or the job ends it, else once.
int show_top(const Options& options) {
  const FoundJob job = choose_job(find_jobs(options.directories), options.job);
  if (!job.lives()) throw NoJob(fmt::format("job {}: {}; coljob why says what its ranks were in", job.id, job.problem));
  const ViewSpec view{.tool = "coljob",
                      .job = {job.id, job.directory, job.page},
                      .style = tools::Screen::own().style(),
                      .patience = std::chrono::duration<double>(options.patience).count()};
  constexpr std::size_t kColumnsOfFile = 160;
  if (!is_live_terminal()) return print(one_frame(view, tools::stdout_columns().value_or(kColumnsOfFile)));
  if (!run_view(view)) return tools::exit_code::kSuccess;
  return print(fmt::format("job {} has ended\n", tools::one_line(job.id)));
}

int dump(const Options& options) {
  const JobStory story = story_of(options, RankRecord::kRecordedCalls);
  const std::string text = report_json_text(story);
  if (options.output.empty()) return print(text);
  tools::write_file(options.output, text);
  return tools::exit_code::kSuccess;
}

}  // namespace

int run(const Options& options) {
  switch (options.command) {
    case Command::ps:
      return show_jobs(options);
    case Command::why:
      return explain(options);
    case Command::stacks:
      return show_stacks(options);
    case Command::top:
      return show_top(options);
    default:
      return dump(options);
  }
}

}  // namespace col::coljob
