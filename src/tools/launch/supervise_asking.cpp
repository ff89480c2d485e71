// What the ranks of a job are doing, while it runs: asked by a signal, by coljob, by another node, by --report-hang.
#include <algorithm>
#include <csignal>
#include <cstddef>
#include <exception>
#include <memory>
#include <optional>
#include <utility>

#include "launch/attempt.hpp"
#include "launch/processes/descriptors.hpp"
#include "launch/report/look.hpp"
#include "launch/report/why.hpp"
#include "launch/report/why_table.hpp"
#include "launch/supervise.hpp"

namespace col::launch {
namespace {

// So long after a SIGQUIT, another one ends the job.
constexpr std::chrono::seconds kQuitTwice{2};

// An answer is one message, which must not become so long that its sender is taken for lost: of many ranks, each has
// fewer calls in it.
AskedFor allowed(AskedFor asked, int ranks) {
  constexpr std::size_t kAllRanks = std::size_t{1} << 17;
  const std::size_t most = std::max(kReportedCalls, kAllRanks / static_cast<std::size_t>(std::max(ranks, 1)));
  asked.calls = static_cast<int>(
      std::min({static_cast<std::size_t>(std::max(asked.calls, 0)), RankRecord::kRecordedCalls, most}));
  return asked;
}

}  // namespace

// A job of one node has a control page that says all.
void Supervisor::open_desk(const std::string& directory) {
  if (link_) desk_ = std::make_unique<AskDesk>(directory, epoll_.get(), epoll_tag::kDesk);
}

// All but its ranks. Until the meeting says whom it has asked, all other nodes are silent.
JobStory Supervisor::view_of_job() const {
  JobStory story;
  story.tool = parts_.spec.tool;
  story.job_id = parts_.job_id;
  for (const Program& program : parts_.spec.programs) {
    if (!story.command_line.empty()) story.command_line.emplace_back(":");
    story.command_line.insert(story.command_line.end(), program.command.begin(), program.command.end());
  }
  story.started_at = began_at_;
  story.seconds = std::chrono::duration<double>(Clock::now() - began_).count();
  story.restarts = restarts_;
  if (!attempt_) return story;
  const Assignment& assignment = attempt_->assignment();
  story.job_id = assignment.job_id;
  story.nodes = assignment.nodes;
  int first_rank = 0;
  for (int node = 0; node < static_cast<int>(assignment.ranks_of_nodes.size()); ++node) {
    const int ranks = assignment.ranks_of_nodes[static_cast<std::size_t>(node)];
    if (node != assignment.node_rank)
      story.silent.push_back({.node_rank = node, .host = {}, .first_rank = first_rank, .ranks = ranks});
    first_rank += ranks;
  }
  return story;
}

// The ranks of this node at this moment.
JobStory Supervisor::own_view(const AskedFor& what) {
  JobStory story = view_of_job();
  story.silent.clear();
  if (attempt_) story.ranks = attempt_->stories_now(static_cast<std::size_t>(what.calls), what.use);
  return story;
}

// Calls `done` with the ranks of all nodes: at once if this is the only one, else when they have answered or their time
// is up.
void Supervisor::ask_all(const AskedFor& what, Questions::Done done) {
  if (!link_) return done(own_view(what));
  const int number = questions_.open(view_of_job(), Clock::now() + answer_time(what.stacks), std::move(done));
  link_->ask(number, what);
  if (what.stacks)
    take_asked_stacks(what, [this, number](JobStory own) { questions_.on_own(number, std::move(own)); });
  else
    questions_.on_own(number, own_view(what));
}

void Supervisor::on_desk(std::size_t index) {
  if (!desk_) return;
  for (const AskDesk::Request& request : desk_->on_event(index)) {
    // A desk of another start has other clients of the same numbers.
    const auto answer = [this, client = request.client, start = restarts_](const JobStory& story) {
      if (desk_ && restarts_ == start) desk_->answer(client, story);
    };
    ask_all(allowed(request.what, ranks_of_job()), answer);
  }
}

int Supervisor::ranks_of_job() const {
  return attempt_ ? attempt_->assignment().world_size : 1;
}

// By another node.
void Supervisor::on_asked(const LinkEvent& event) {
  const AskedFor what = allowed(event.what, ranks_of_job());
  if (!what.stacks) return link_->tell_answer(event.question, own_view(what));
  take_asked_stacks(what, [this, question = event.question](const JobStory& own) {
    if (link_) link_->tell_answer(question, own);
  });
}

// Who asks while they are taken gets the same.
void Supervisor::take_asked_stacks(const AskedFor& what, std::function<void(JobStory)> then) {
  stack_askers_.push_back([this, what, then = std::move(then)](const std::vector<std::optional<Stack>>& stacks) {
    JobStory own = own_view(what);
    for (RankStory& rank : own.ranks) {
      const auto found = std::ranges::find(asked_pids_, rank.status.pid);
      if (found != asked_pids_.end()) rank.stack = stacks[static_cast<std::size_t>(found - asked_pids_.begin())];
    }
    then(std::move(own));
  });
  if (asked_stacks_) return;
  asked_pids_ = attempt_ ? attempt_->living_pids() : std::vector<pid_t>();
  try {
    asked_stacks_ = std::make_unique<StackTaker>(asked_pids_, Clock::now() + StackTaker::kUsualTime,
                                                 StackTaker::Options{.most_processes = asked_pids_.size()});
    watch_readable(epoll_.get(), asked_stacks_->fd(), epoll_tag::kStacks);
    work_on_asked_stacks(Clock::now());
  } catch (const std::exception& error) {  // such as too many open files: a question ends no job
    say("no stacks can be taken: {}", error.what());
    asked_stacks_.reset();
    tell_stacks(std::vector<std::optional<Stack>>(asked_pids_.size()));
  }
}

void Supervisor::tell_stacks(const std::vector<std::optional<Stack>>& stacks) {
  for (const auto& tell : std::exchange(stack_askers_, {})) tell(stacks);
}

void Supervisor::work_on_asked_stacks(Time now) {
  if (!asked_stacks_) return;
  asked_stacks_->work(now);
  if (!asked_stacks_->finished()) return;
  const std::vector<std::optional<Stack>> stacks = asked_stacks_->take();
  asked_stacks_.reset();
  tell_stacks(stacks);
}

// The ranks have ended, and what is asked about them has no answer any more.
void Supervisor::forget_askers() {
  desk_.reset();
  stacks_.reset();
  asked_stacks_.reset();
  stack_askers_.clear();
}

// The first SIGQUIT asks what the ranks wait for; one that follows soon ends the job.
bool Supervisor::only_asks_why(Time now) {
  const bool only_watches = link_ && parts_.spec.local_ranks() == 0;
  if (attempt_ ? attempt_->ending().is_ending() : !only_watches) return false;
  const bool is_second = asked_why_ && now < *asked_why_ + kQuitTwice;
  asked_why_ = now;
  return !is_second;
}

void Supervisor::say_why(const JobStory& story, const Why& found) {
  for (const std::string& line : why_lines(story, found, tools::Style())) say("{}", line);
}

// Looks when a wait can have lasted for long enough. Of several nodes, the first one does.
void Supervisor::report_hang(Time now) {
  if (!parts_.spec.inspect.report_hang || looks_for_hang_ || now < next_hang_look_ || node_rank_ > 0) return;
  looks_for_hang_ = true;
  ask_all({.calls = kReportedCalls}, [this](const JobStory& story) { on_hang_view(story); });
}

void Supervisor::on_hang_view(const JobStory& story) {
  looks_for_hang_ = false;
  const std::chrono::milliseconds patience = *parts_.spec.inspect.report_hang;
  const Why found = why(story);
  const std::chrono::duration<double> waited(found.seconds), left = patience - waited;
  const bool hangs = found.cause != Why::Cause::nothing && left.count() <= 0;
  next_hang_look_ = Clock::now() + (hangs ? patience : std::chrono::ceil<std::chrono::milliseconds>(left));
  if (hangs) say_why(story, found);
}

}  // namespace col::launch
