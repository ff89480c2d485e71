#include "launch/top/view.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <exception>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <col/job.hpp>

#include "common/text.hpp"
#include "common/write_file.hpp"
#include "core/clock/clock.hpp"
#include "launch/processes/signals.hpp"
#include "launch/report/report.hpp"
#include "launch/report/report_json.hpp"
#include "launch/report/stacks.hpp"
#include "launch/report/wait_graph.hpp"
#include "launch/report/why.hpp"
#include "launch/top/frame.hpp"
#include "launch/top/live_job.hpp"
#include "launch/top/live_terminal.hpp"
#include "launch/top/rates.hpp"

namespace col::launch {
namespace {

using Clock = LiveTerminal::Clock;
using Event = LiveTerminal::Event;

constexpr std::chrono::milliseconds kBetweenFrames{500};
constexpr std::chrono::seconds kNoteTime{5};
constexpr std::size_t kMostStacks = 8;

class View {
 public:
  explicit View(const ViewSpec& spec) : spec_(spec), job_(spec.job) {}

  bool run() {
    for (Clock::time_point due = Clock::now(); !left_;) {
      const Event event = terminal_.next(due, job_.fd());
      switch (event.kind) {
        case Event::Kind::time:
          due = std::max(due + kBetweenFrames, Clock::now());
          if (paused_) break;
          // The launcher may just have moved: from the ranks of this host, which have ended, to those of others.
          if (over_ && !job_.finds_restart() && !(job_.ask() && !job_.is_over())) return true;
          // When the other hosts have answered, all are looked at.
          if (!job_.ask() || is_first_) refresh();
          break;
        case Event::Kind::readable:
          if (job_.hear() && !paused_) refresh();
          break;
        default:
          handle(event);
      }
      draw();
    }
    return false;
  }

 private:
  void refresh() {
    look_ = job_.look();
    over_ = job_.is_over();
    is_first_ = false;
  }

  FrameOptions options() const {
    const LiveTerminal::Size size = terminal_.size();
    FrameOptions options{.columns = size.columns, .lines = size.lines, .style = spec_.style, .sort = sort_};
    options.paused = paused_;
    options.patience = spec_.patience;
    options.notices = look_.notices;
    if (Clock::now() < note_until_) options.note = note_;
    return options;
  }

  void draw() {
    const FrameOptions now = options();
    if (page_of_text_.empty()) return terminal_.show(draw_frame(look_.story, look_.found, look_.rates, now));
    std::vector<std::string> lines = page_of_text_;
    for (std::string& line : lines) line = tools::cut(line, now.columns);
    if (lines.size() >= now.lines) lines.resize(now.lines - std::min<std::size_t>(now.lines, 1));
    lines.resize(now.lines - std::min<std::size_t>(now.lines, 1));
    lines.emplace_back(tools::cut("any key: back to the ranks", now.columns));
    terminal_.show(lines);
  }

  void handle(const Event& event) {
    switch (event.kind) {
      case Event::Kind::signal:
        terminal_.leave();
        die_of(event.signal);
      case Event::Kind::gone:
        left_ = true;
        return;
      case Event::Kind::key:
        return page_of_text_.empty() ? on_key(event.key) : page_of_text_.clear();
      default:
        return;
    }
  }

  void on_key(char key) {
    switch (key) {
      case 'q':
      case 'Q':
        left_ = true;
        return;
      case 's':
        sort_ = next(sort_);
        return;
      case 'p':
        paused_ = !paused_;
        return;
      case 'd':
        return dump();
      case 'k':
        return show_stacks();
      default:
        return note(fmt::format("there is no key '{}'", tools::clean(std::string(1, key), true)));
    }
  }

  void note(std::string text) {
    note_ = std::move(text);
    note_until_ = Clock::now() + kNoteTime;
  }

  void dump() {
    const std::string name = fmt::format("{}-{}.json", spec_.tool, tools::clean(spec_.job.id, true));
    try {
      const JobStory story = job_.whole({.calls = RankRecord::kRecordedCalls});
      tools::write_file(name, report_json_text(story));
      const std::size_t known = look_.story.ranks.size(), missing = known - std::min(known, story.ranks.size());
      note(missing == 0 ? fmt::format("wrote {}; coljob why {} reads it", name, name)
                        : fmt::format("wrote {} without {} that did not answer in time; d again may have all", name,
                                      tools::counted(missing, "rank")));
    } catch (const std::exception& error) {
      note(error.what());
    }
  }

  // Of the first ranks, as they stand there.
  void show_stacks() {
    note("taking stacks; the ranks stand still for a moment");
    draw();
    JobStory story = job_.whole({.stacks = true});
    const WaitGraph graph(story);
    std::vector<RankRates> rates = look_.rates;
    rates.resize(story.ranks.size());  // ranks may have come or gone
    std::vector<RankStory*> first, here;
    for (const std::size_t i : order_of_ranks(graph, why(story), rates, sort_, false)) {
      RankStory& rank = story.ranks[i];
      if (first.size() >= kMostStacks) {
        rank.stack.reset();
        continue;
      }
      first.push_back(&rank);
      // A launcher takes those of its ranks, which are processes of other hosts.
      if (story.nodes == 1) here.push_back(&rank);
    }
    take_stacks(here, kMostStacks);
    ReportStyle style;
    style.text = spec_.style;
    page_of_text_ = stack_lines(story, style);
    note_until_ = {};
    if (page_of_text_.empty()) note("no stack can be read; see kernel.yama.ptrace_scope");
  }

  const ViewSpec& spec_;
  LiveTerminal terminal_;
  LiveJob job_;
  JobLook look_;
  bool is_first_ = true;
  SortBy sort_ = SortBy::interest;
  bool paused_ = false;
  bool left_ = false;
  bool over_ = false;
  std::string note_;
  Clock::time_point note_until_{};
  std::vector<std::string> page_of_text_;  // shown in place of the ranks
};

}  // namespace

bool run_view(const ViewSpec& spec) {
  return View(spec).run();
}

std::string one_frame(const ViewSpec& spec, std::size_t columns) {
  LiveJob job(spec.job);
  job.ask();
  job.wait();
  job.look();
  core::sleep_for(kBetweenFrames);
  job.ask();
  job.wait();
  const JobLook look = job.look();
  FrameOptions options{.columns = columns, .lines = 0, .style = spec.style};
  options.patience = spec.patience;
  options.notices = look.notices;
  std::string text;
  for (const std::string& line : draw_frame(look.story, look.found, look.rates, options)) text += line + "\n";
  return text;
}

}  // namespace col::launch
