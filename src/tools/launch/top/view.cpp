#include "launch/top/view.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <exception>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <col/error.hpp>

#include "common/text.hpp"
#include "common/write_file.hpp"
#include "launch/processes/signals.hpp"
#include "launch/report/look.hpp"
#include "launch/report/report.hpp"
#include "launch/report/report_json.hpp"
#include "launch/report/stacks.hpp"
#include "launch/report/why.hpp"
#include "launch/top/frame.hpp"
#include "launch/top/live_terminal.hpp"
#include "launch/top/rates.hpp"

namespace col::launch {
namespace {

using Clock = LiveTerminal::Clock;
using Event = LiveTerminal::Event;

constexpr std::chrono::milliseconds kBetweenFrames{500};
constexpr std::chrono::seconds kNoteTime{5};
constexpr std::size_t kMostStacks = 8;
// An entry of the recorder tells which messages nobody has received; of many ranks it takes too long.
constexpr int kManyRanks = 64;

// Whether no process of it is left, or all its ranks have ended.
bool is_over(const ControlPage& page) {
  bool all_ended = true;
  for (int i = 0; i < page.local_ranks(); ++i) all_ended = all_ended && page.record(i).has_ended();
  if (all_ended) return true;
  if (page.maker_lives()) return false;
  const std::vector<RankActivity> all = page.activities();
  return std::ranges::all_of(
      all, [](const RankActivity& one) { return one.gone || one.state == RankActivity::State::finished; });
}

struct Look {
  JobStory story;
  Why found;
  std::vector<RankRates> rates;
};

Look look_at(const ControlPage& page, const std::string& job_id, RateMeter& meter) {
  Look look;
  look.story = look_at_job(page, job_id, page.local_ranks() > kManyRanks ? 0 : kReportedCalls);
  look.found = why(look.story);
  look.rates = meter.look(page, look.story);
  return look;
}

class View {
 public:
  explicit View(const ViewSpec& spec) : spec_(spec), page_(spec.page) {}

  bool run() {
    refresh();
    for (Clock::time_point due = Clock::now(); !left_;) {
      draw();
      const Event event = terminal_.next(due);
      if (event.kind == Event::Kind::time) {
        due = std::max(due + kBetweenFrames, Clock::now());
        if (paused_) continue;
        if (over_ && !finds_restart()) return true;
        refresh();
      } else {
        handle(event);
      }
    }
    return false;
  }

 private:
  void refresh() {
    look_ = look_at(*page_, spec_.job_id, meter_);
    over_ = is_over(*page_);
  }

  // A job whose ranks are started again has another page under the same name.
  bool finds_restart() {
    try {
      std::shared_ptr<ControlPage> page = ControlPage::look_at(spec_.path);
      if (page->made_at() == page_->made_at() || is_over(*page)) return false;
      page_ = std::move(page);
      meter_.forget();
      return true;
    } catch (const Error&) {
      return false;
    }
  }

  FrameOptions options() const {
    const LiveTerminal::Size size = terminal_.size();
    FrameOptions options{.columns = size.columns, .lines = size.lines, .style = spec_.style, .sort = sort_};
    options.paused = paused_;
    options.patience = spec_.patience;
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
    const std::string name = fmt::format("{}-{}.json", spec_.tool, tools::clean(spec_.job_id, true));
    try {
      tools::write_file(name, report_json_text(look_at_job(*page_, spec_.job_id, RankRecord::kRecordedCalls)));
      note(fmt::format("wrote {}; coljob why {} reads it", name, name));
    } catch (const std::exception& error) {
      note(error.what());
    }
  }

  // Of the first ranks, as they stand there.
  void show_stacks() {
    note("taking stacks; the ranks stand still for a moment");
    draw();
    JobStory story = look_at_job(*page_, spec_.job_id, 0);
    const WaitGraph graph(story);
    std::vector<RankStory*> ranks;
    for (const std::size_t i : order_of_ranks(graph, why(story), look_.rates, sort_, false)) {
      if (ranks.size() < kMostStacks) ranks.push_back(&story.ranks[i]);
    }
    take_stacks(ranks, kMostStacks);
    ReportStyle style;
    style.text = spec_.style;
    page_of_text_ = stack_lines(story, style);
    note_until_ = {};
    if (page_of_text_.empty()) note("no stack can be read; see kernel.yama.ptrace_scope");
  }

  const ViewSpec& spec_;
  LiveTerminal terminal_;
  std::shared_ptr<ControlPage> page_;
  RateMeter meter_;
  Look look_;
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
  RateMeter meter;
  look_at(*spec.page, spec.job_id, meter);
  std::this_thread::sleep_for(kBetweenFrames);
  const Look look = look_at(*spec.page, spec.job_id, meter);
  FrameOptions options{.columns = columns, .lines = 0, .style = spec.style};
  options.patience = spec.patience;
  std::string text;
  for (const std::string& line : draw_frame(look.story, look.found, look.rates, options)) text += line + "\n";
  return text;
}

}  // namespace col::launch
