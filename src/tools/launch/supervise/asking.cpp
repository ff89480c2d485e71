#include "launch/supervise/asking.hpp"

#include <algorithm>
#include <cstddef>
#include <exception>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "common/text.hpp"
#include "launch/report/look.hpp"
#include "launch/report/report_json.hpp"
#include "launch/report/why.hpp"

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
void Asking::open_desk(const std::string& directory) {
  if (!job_.link) return;
  desk_ = std::make_unique<AskDesk>(directory, job_.events,
                                    [this](const AskDesk::Request& request) { on_request(request); });
}

// All but its ranks. Until the meeting says whom it has asked, all other nodes are silent.
JobStory Asking::view_of_job() const {
  JobStory story = job_.story();
  for (const Program& program : job_.parts.spec.programs) {
    if (!story.command_line.empty()) story.command_line.emplace_back(":");
    story.command_line.insert(story.command_line.end(), program.command.begin(), program.command.end());
  }
  if (!job_.attempt) return story;
  const Assignment& assignment = job_.attempt->assignment();
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
JobStory Asking::own_view(const AskedFor& what) {
  JobStory story = view_of_job();
  story.silent.clear();
  if (job_.attempt) story.ranks = job_.attempt->stories_now(static_cast<std::size_t>(what.calls), what.use);
  return story;
}

void Asking::ask_all(const AskedFor& what, Questions::Done done) {
  if (!job_.link) return done(own_view(what));
  const int number = questions_.open(view_of_job(), NodeJob::Clock::now() + answer_time(what.stacks), std::move(done));
  job_.link->tell(ask_of(number, what));
  if (what.stacks)
    take_stacks(what, [this, number](JobStory own) { questions_.on_own(number, std::move(own)); });
  else
    questions_.on_own(number, own_view(what));
}

void Asking::on_request(const AskDesk::Request& request) {
  // A desk of another start has other clients of the same numbers.
  const auto answer = [this, client = request.client, start = job_.restarts](const JobStory& story) {
    if (desk_ && job_.restarts == start) desk_->answer(client, story);
  };
  ask_all(allowed(request.what, ranks_of_job()), answer);
}

int Asking::ranks_of_job() const {
  return job_.attempt ? job_.attempt->assignment().world_size : 1;
}

std::optional<Asking::Time> Asking::deadline() const {
  return earlier(stacks_ ? stacks_->deadline() : std::nullopt, questions_.deadline());
}

void Asking::on_asked(const LinkEvent& event) {
  const AskedFor what = allowed(event.what, ranks_of_job());
  const auto answer = [this, question = event.question](const JobStory& own) {
    if (job_.link) job_.link->tell(Answer{.question = question, .story = story_to_json(own)});
  };
  if (what.stacks)
    take_stacks(what, answer);
  else
    answer(own_view(what));
}

// Everybody who asks while they are taken gets the same.
void Asking::take_stacks(const AskedFor& what, std::function<void(JobStory)> then) {
  stack_askers_.push_back([this, what, then = std::move(then)](const Stacks& stacks) {
    JobStory own = own_view(what);
    for (RankStory& rank : own.ranks) {
      const auto found = std::ranges::find(stacks, rank.status.pid, &Stacks::value_type::first);
      if (found != stacks.end()) rank.stack = found->second;
    }
    then(std::move(own));
  });
  if (stacks_) return;
  const std::vector<pid_t> pids = job_.attempt ? job_.attempt->living_pids() : std::vector<pid_t>();
  const StackTaker::Options options{.most_processes = pids.size()};
  try {
    stacks_.emplace(job_.events, pids, NodeJob::Clock::now() + StackTaker::kUsualTime, options);
    work_on_stacks(NodeJob::Clock::now());
  } catch (const std::exception& error) {  // such as too many open files: a question ends no job
    job_.say("no stacks can be taken: {}", error.what());
    stacks_.reset();
    tell_stacks({});
  }
}

void Asking::tell_stacks(const Stacks& stacks) {
  for (const auto& tell : std::exchange(stack_askers_, {})) tell(stacks);
}

void Asking::work_on_stacks(Time now) {
  if (!stacks_) return;
  stacks_->work(now);
  if (!stacks_->finished()) return;
  const Stacks stacks = stacks_->take_by_pid();
  stacks_.reset();
  tell_stacks(stacks);
}

void Asking::tick(Time now) {
  work_on_stacks(now);
  questions_.tick(now);
}

void Asking::forget() {
  desk_.reset();
  stacks_.reset();
  stack_askers_.clear();
}

bool Asking::only_asks_why(Time now) {
  const bool only_watches = job_.link && job_.parts.spec.local_ranks() == 0;
  if (job_.attempt ? job_.attempt->ending().is_ending() : !only_watches) return false;
  const bool is_second = asked_why_ && now < *asked_why_ + kQuitTwice;
  asked_why_ = now;
  return !is_second;
}

void Asking::say_why() {
  ask_all({.calls = kReportedCalls}, [this](const JobStory& story) { say_why(story, why(story)); });
}

void Asking::say_why(const JobStory& story, const Why& found) {
  for (const std::string& line : tools::lines_of(report_text(why_part(story, found), {}, ""))) job_.say("{}", line);
}

std::optional<Asking::Time> Asking::next_hang_look() const {
  const bool looks = job_.parts.spec.inspect.report_hang && !looks_for_hang_ && job_.node_rank <= 0;
  return looks ? std::optional(next_hang_look_) : std::nullopt;
}

void Asking::report_hang(Time now) {
  const auto due = next_hang_look();
  if (!due || now < *due) return;
  looks_for_hang_ = true;
  ask_all({.calls = kReportedCalls}, [this](const JobStory& story) { on_hang_view(story); });
}

void Asking::on_hang_view(const JobStory& story) {
  looks_for_hang_ = false;
  const std::chrono::milliseconds patience = *job_.parts.spec.inspect.report_hang;
  const Why found = why(story);
  const std::chrono::duration<double> waited(found.seconds), left = patience - waited;
  const bool hangs = found.cause != Why::Cause::nothing && left.count() <= 0;
  next_hang_look_ = NodeJob::Clock::now() + (hangs ? patience : std::chrono::ceil<std::chrono::milliseconds>(left));
  if (hangs) say_why(story, found);
}

int Questions::open(JobStory story, Time until, Done done) {
  open_.emplace(next_, Open{.story = std::move(story), .until = until, .done = std::move(done)});
  return next_++;
}

void Questions::on_own(int number, JobStory story) {
  const auto found = open_.find(number);
  if (found == open_.end()) return;
  found->second.has_own = true;
  take_ranks(found->second, story);
  end_if_whole(number);
}

void Questions::on_asked(int number, JobStory story) {
  const auto found = open_.find(number);
  if (found == open_.end()) return;
  Open& open = found->second;
  open.has_asked = true;
  open.story.nodes = story.nodes;
  open.story.restarts = story.restarts;
  open.story.silent = std::move(story.silent);
  take_ranks(open, story);
  end_if_whole(number);
}

void Questions::on_answer(int number, int node_rank, JobStory story) {
  const auto found = open_.find(number);
  if (found == open_.end()) return;
  std::erase_if(found->second.story.silent, [&](const SilentNode& node) { return node.node_rank == node_rank; });
  take_ranks(found->second, story);
  end_if_whole(number);
}

// A node whose ranks have just ended may be in the meeting's word and in its own.
void Questions::take_ranks(Open& open, JobStory& story) {
  std::vector<RankStory>& ranks = open.story.ranks;
  for (RankStory& rank : story.ranks) {
    const bool is_known = std::ranges::any_of(ranks, [&](const RankStory& known) { return known.rank == rank.rank; });
    if (!is_known) ranks.push_back(std::move(rank));
  }
}

void Questions::end_if_whole(int number) {
  const Open& open = open_.at(number);
  if (open.has_own && open.has_asked && open.story.silent.empty()) end(number);
}

void Questions::end(int number) {
  auto open = open_.extract(number);
  JobStory& story = open.mapped().story;
  std::ranges::sort(story.ranks, {}, &RankStory::rank);
  open.mapped().done(std::move(story));
}

void Questions::tick(Time now) {
  std::vector<int> late;
  for (const auto& [number, open] : open_) {
    if (now >= open.until) late.push_back(number);
  }
  for (const int number : late) end(number);
}

std::optional<Questions::Time> Questions::deadline() const {
  std::optional<Time> first;
  for (const auto& [number, open] : open_) first = std::min(first.value_or(open.until), open.until);
  return first;
}

}  // namespace col::launch
