#include "launch/top/view.hpp"

#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <exception>
#include <memory>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <col/error.hpp>
#include <col/job.hpp>

#include "common/exit_codes.hpp"
#include "common/screen.hpp"
#include "common/text.hpp"
#include "common/write_file.hpp"
#include "core/clock/clock.hpp"
#include "launch/job/launch_error.hpp"
#include "launch/nodes/ask_desk.hpp"
#include "launch/processes/job_directory.hpp"
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

// The page is there as soon as the first rank is about to be started.
constexpr std::chrono::milliseconds kPagePause{20};
// How long the view gets to give the terminal back.
constexpr std::chrono::seconds kViewEnd{2};
constexpr std::chrono::milliseconds kEndPause{5};

tools::UniqueFd unnamed_file() {
  const char* const chosen = std::getenv("TMPDIR");
  tools::UniqueFd file(
      ::open(chosen != nullptr && *chosen != '\0' ? chosen : "/tmp", O_TMPFILE | O_RDWR | O_APPEND | O_CLOEXEC, 0600));
  // Some file systems have none.
  if (!file) file.reset(::memfd_create("col-output", MFD_CLOEXEC));
  return file;
}

[[noreturn]] void show_job(const std::string& job_id, pid_t front) {
  // Whatever ends the launcher, the terminal is given back.
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != front) ::_exit(0);
  sigset_t none;
  sigemptyset(&none);
  ::pthread_sigmask(SIG_SETMASK, &none, nullptr);
  const JobDirectory directory(job_id);
  std::shared_ptr<ControlPage> page;
  // A launcher that has no ranks on this host has no page, but a desk. It ends this process if there never is either.
  while (!page && !AskingLauncher::can_ask(directory.path())) {
    try {
      page = ControlPage::look_at(directory.control());
    } catch (const Error&) {
      core::sleep_for(kPagePause);
    }
  }
  try {
    run_view({.tool = "colrun", .job = {job_id, directory.path(), page}, .style = tools::Screen::own().style()});
  } catch (const std::exception&) {  // the job goes on without it
  }
  ::_exit(0);
}

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

Watching::Watching(JobSpec& spec) : out_(spec.stdout_fd) {
  if (spec.stdout_fd != STDOUT_FILENO || !is_live_terminal())
    throw LaunchError(tools::exit_code::kUsage,
                      "--watch shows a live view, and stdin and stdout are no terminal that could; leave it out, and "
                      "look with coljob top");
  file_ = unnamed_file();
  if (!file_ || ::tcgetattr(STDIN_FILENO, &before_) != 0)
    throw LaunchError(tools::exit_code::kLauncher, "--watch: cannot make a file for the ranks' output: {}",
                      strerror(errno));
  spec.stdout_fd = file_.get();
  if (::isatty(spec.stderr_fd) == 1) spec.stderr_fd = file_.get();
  if (::isatty(spec.stdin_fd) == 1) spec.stdin_fd = -1;
}

void Watching::start(const std::string& job_id, int lifeline) {
  const pid_t front = ::getpid();
  view_ = ::fork();
  if (view_ == 0) {
    ::close(lifeline);
    show_job(job_id, front);
  }
  if (view_ < 0) view_ = 0;  // the job runs; its output is shown
}

void Watching::work() {
  int wait_status = 0;
  if (is_shown() && ::waitpid(view_, &wait_status, WNOHANG) == view_) {
    view_ = 0;
    if (WIFSIGNALED(wait_status)) restore_terminal(before_);
  }
  if (!is_shown()) pass_output();
}

void Watching::finish() {
  if (is_shown()) ::kill(view_, SIGTERM);
  const auto latest = core::Clock::now() + kViewEnd;
  for (work(); is_shown(); work()) {
    if (core::Clock::now() > latest) ::kill(view_, SIGKILL);
    core::sleep_for(kEndPause);
  }
}

void Watching::pass_output() {
  std::array<char, 64 * 1024> part;
  for (;;) {
    const ssize_t count = ::pread(file_.get(), part.data(), part.size(), passed_);
    if (count <= 0) return;
    for (ssize_t done = 0; done < count;) {
      const ssize_t written = ::write(out_, part.data() + done, static_cast<std::size_t>(count - done));
      if (written < 0 && errno == EAGAIN) {
        pollfd writable{out_, POLLOUT, 0};
        core::poll_for({&writable, 1}, Deadline::kMaxBudget);
        continue;
      }
      if (written < 0 && errno != EINTR) return;  // the terminal has gone
      done += std::max<ssize_t>(written, 0);
    }
    passed_ += count;
    // A part that has been passed takes no more room. No harm where the file system cannot.
    static_cast<void>(::fallocate(file_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, passed_));
  }
}

}  // namespace col::launch
