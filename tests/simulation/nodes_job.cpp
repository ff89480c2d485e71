#include "simulation/nodes_job.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/clock/clock.hpp"
#include "core/duration.hpp"
#include "launch/nodes/endpoint.hpp"
#include "launch/nodes/meeting.hpp"
#include "launch/nodes/node_link.hpp"
#include "launch/report/report_json.hpp"
#include "simulation/faults.hpp"
#include "simulation/network.hpp"
#include "simulation/simulator.hpp"
#include "simulation/streams.hpp"

namespace col::test {
namespace {

using namespace std::chrono_literals;
using launch::EndCause;
using launch::LinkEvent;
using Time = Simulator::Time;

constexpr int kPort = launch::kDefaultPort;
constexpr const char* kMeetingAddress = "10.0.0.1";
// Ranks that are told to end do so within this time.
constexpr auto kLongestEnd = 300ms;

// ---- The plan

// The play of a node's ranks: how they end by themselves.
enum class Play { end_well, fail, interrupt, reach_limit };

struct NodePlan {
  int ranks = 1;
  int wanted_rank = -1;
  Duration comes_after = {};
  std::string secret = "sesame";
  bool asks_for_clock = false;
};

struct NodesPlan {
  std::vector<NodePlan> nodes;
  int min_nodes = 1;
  int max_restarts = 0;
  bool others_may_come = true, has_barrier = false, asks = false, traces = false;
  launch::ExitPolicy exit_policy = launch::ExitPolicy::first;
  launch::Milliseconds join_timeout{10'000}, host_timeout{5'000};
  Duration longest_delay = {}, longest_run = {};
  std::vector<Play> plays;  // of some node, by the number of the start; well afterwards
  std::vector<Fault> faults;
  int count() const { return static_cast<int>(nodes.size()); }
};

NodesPlan choose_plan(std::uint64_t seed) {
  Random random(seed * 2 + 1);
  NodesPlan plan;
  plan.nodes.resize(static_cast<std::size_t>(random.from_to(2, 5)));
  plan.min_nodes = random.one_in(2) ? plan.count() : random.from_to(1, plan.count());
  const bool has_numbers = random.one_in(2), hastens = random.one_in(2);
  const int ranks = random.from_to(1, 3);
  for (int node = 0; node < plan.count(); ++node) {
    NodePlan& one = plan.nodes[static_cast<std::size_t>(node)];
    one.ranks = random.one_in(6) ? random.from_to(1, 4) : ranks;
    if (has_numbers) one.wanted_rank = node;
    one.comes_after = hastens ? 1us * random.from_to(0, 2000) : 1ms * random.from_to(0, 4000);
    if (random.one_in(20)) one.comes_after += 8s;
    one.asks_for_clock = random.one_in(2);
    if (random.one_in(60)) one.secret = "another";
  }
  plan.max_restarts = random.from_to(0, 2);
  plan.others_may_come = !random.one_in(4);
  plan.has_barrier = random.one_in(3);
  plan.asks = random.one_in(3);
  plan.traces = random.one_in(4);
  plan.exit_policy =
      std::array{launch::ExitPolicy::first, launch::ExitPolicy::max, launch::ExitPolicy::rank0}[random.below(3)];
  plan.host_timeout = launch::Milliseconds(std::array{1'000, 5'000, 20'000}[random.below(3)]);
  plan.longest_delay = std::array<Duration, 3>{20us, 200us, 2ms}[random.below(3)];
  plan.longest_run = std::array<Duration, 3>{10ms, 1s, 30s}[random.below(3)];
  for (int start = random.one_in(2) ? 0 : random.from_to(1, 3); start > 0; --start)
    plan.plays.push_back(random.one_in(2) ? Play::fail : static_cast<Play>(random.below(4)));
  if (random.one_in(4)) return plan;
  plan.faults = choose_faults(random, plan.count(), 4 * plan.count(), 5s);
  // Nodes have no connections but those to the meeting.
  std::erase_if(plan.faults, [](const Fault& fault) { return fault.other >= 0; });
  if (random.one_in(3)) plan.faults.push_back(choose_store_fault(random, plan.count(), 4 * plan.count(), 5s));
  return plan;
}

std::string describe(const NodesPlan& plan) {
  std::string text = fmt::format("{} nodes, {} at least, {} restarts, silence {}, delays up to {}", plan.count(),
                                 plan.min_nodes, plan.max_restarts, core::format_duration(plan.host_timeout * 4 / 5),
                                 core::format_duration(plan.longest_delay));
  for (const Play play : plan.plays)
    text += play == Play::end_well    ? ", well"
            : play == Play::fail      ? ", fails"
            : play == Play::interrupt ? ", signal"
                                      : ", limit";
  for (const Fault& fault : plan.faults) text += ", " + describe(fault);
  return text;
}

// ---- The job

// The last word of a node's link.
struct Outcome {
  std::optional<LinkEvent> event = {};
  int starts = 0;
  Time ended = {};
};

struct Start {
  int node = -1;
  launch::Assignment assignment;
};

class NodesJob {
 public:
  NodesJob(std::uint64_t seed, std::FILE* file)
      : plan_(choose_plan(seed)),
        trace_(file),
        simulator_(seed, trace_),
        truth_(simulator_, plan_.faults, plan_.count(), plan_.count() + 1),
        network_(simulator_, truth_, plan_.longest_delay),
        streams_(simulator_, truth_, network_),
        outcomes_(plan_.nodes.size()) {
    simulator_.connect_by(streams_);
  }

  JobReport run();

 private:
  friend class SimulatedNode;

  void meet();
  void check();
  void check_starts();
  void check_end(int node);
  bool is_of_the_plan() const;
  void problem(std::string text) {
    simulator_.note("problem", text);
    problems_.push_back(std::move(text));
  }
  // A rank of the first node that a start finds plays it.
  Play play_of(const launch::Assignment& assignment) const {
    const auto start = static_cast<std::size_t>(assignment.restart);
    const bool is_player = assignment.node_rank == assignment.restart % assignment.nodes;
    return is_player && start < plan_.plays.size() ? plan_.plays[start] : Play::end_well;
  }

  const NodesPlan plan_;
  Trace trace_;
  Simulator simulator_;
  Truth truth_;
  SimulatedNetwork network_;
  Streams streams_;
  std::vector<Outcome> outcomes_;
  std::vector<Start> starts_;
  std::vector<std::string> problems_;
};

// The launcher of a node, as far as the meeting sees it.
class SimulatedNode {
 public:
  SimulatedNode(NodesJob& job, int number)
      : job_(job), number_(number), plan_(job.plan_.nodes[static_cast<std::size_t>(number)]) {}

  void live() noexcept {
    try {
      core::sleep_for(plan_.comes_after);
      come();
    } catch (const std::exception& error) {
      job_.problem(fmt::format("node {}: {}", number_, error.what()));
    }
    job_.outcomes_[static_cast<std::size_t>(number_)].ended = job_.simulator_.now();
  }

 private:
  Random& random() { return job_.simulator_.choices(); }
  Duration part_of(Duration longest) {
    return Duration(static_cast<Duration::rep>(random().below(static_cast<std::uint64_t>(longest.count()) + 1)));
  }

  void come();
  void on_event(const LinkEvent& event);
  void begin(const LinkEvent& event);
  void end_ranks(bool by_themselves);
  launch::JobStory story(bool has_failed) const;

  NodesJob& job_;
  const int number_;
  const NodePlan& plan_;
  std::optional<launch::NodeLink> link_;
  std::optional<launch::Assignment> assignment_;  // while its ranks run
  Play play_ = Play::end_well;
  Time end_ = Time::max();  // of its ranks
  bool is_told_ = false;    // they end because they are told
  bool waits_ = false;      // in the barrier
};

void SimulatedNode::come() {
  int fd = -1;
  const Deadline deadline = Deadline::after(job_.plan_.join_timeout);
  while ((fd = core::scheduler()->connect(kMeetingAddress, kPort)) < 0 && !deadline.expired()) core::sleep_for(100ms);
  if (fd < 0) return;
  if (const Duration late = job_.truth_.count_call(number_); late > Duration::zero()) core::sleep_for(late);
  link_.emplace(tools::UniqueFd(fd), kMeetingAddress,
                launch::NodeHello{.id = "run",
                                  .secret = plan_.secret,
                                  .node_rank = plan_.wanted_rank,
                                  .host = fmt::format("n{}", number_),
                                  .local_ranks = plan_.ranks,
                                  .master_port = 5000 + number_,
                                  .wants_stories = number_ == 0,
                                  .asks_for_clock = plan_.asks_for_clock},
                core::Clock::now(), launch::Pulse(job_.plan_.host_timeout));
  while (!link_->lost()) {
    pollfd event{link_->fd(), POLLIN, 0};
    const Time until = std::min(end_, link_->deadline().value_or(Time::max()));
    core::poll_for({&event, 1}, until - core::Clock::now());
    const Time now = core::Clock::now();
    for (const LinkEvent& one : link_->receive(now)) on_event(one);
    link_->tick(now);
    if (now >= end_) end_ranks(!is_told_);
  }
}

void SimulatedNode::on_event(const LinkEvent& event) {
  using Kind = LinkEvent::Kind;
  Outcome& outcome = job_.outcomes_[static_cast<std::size_t>(number_)];
  switch (event.kind) {
    case Kind::start:
      ++outcome.starts;
      return begin(event);
    case Kind::abort:
      job_.simulator_.note("abort", event.abort.message);
      [[fallthrough]];
    case Kind::signal:
    case Kind::limit:
      if (!assignment_ || is_told_) return;
      is_told_ = true;
      end_ = std::min(end_, core::Clock::now() + part_of(kLongestEnd));
      return;
    case Kind::ask:
      return link_->tell(launch::Answer{.question = event.question, .story = launch::story_to_json(story(false))});
    case Kind::exchanged:
      if (!assignment_ || static_cast<int>(event.entries.size()) != assignment_->nodes)
        job_.problem(fmt::format("node {}: {} entries of a barrier", number_, event.entries.size()));
      waits_ = false;
      return;
    case Kind::asked:
    case Kind::answer:
    case Kind::traced:
      return;
    case Kind::done:
    case Kind::refused:
    case Kind::lost:
      job_.simulator_.note("end", fmt::format("{} {}{}", launch::to_string(event.outcome.result.cause),
                                              event.outcome.result.exit_code, event.why));
      outcome.event = event;
      return;
  }
}

void SimulatedNode::begin(const LinkEvent& event) {
  job_.simulator_.note("start", fmt::format("node {} of {}, start {}: {}", event.assignment.node_rank,
                                            event.assignment.nodes, event.assignment.restart, event.why));
  if (assignment_) job_.problem(fmt::format("node {} is to start its ranks while they run", number_));
  if (const Duration late = job_.truth_.count_call(number_); late > Duration::zero()) core::sleep_for(late);
  assignment_ = event.assignment;
  job_.starts_.push_back({number_, *assignment_});
  play_ = job_.play_of(*assignment_);
  is_told_ = false;
  end_ = core::Clock::now() + part_of(job_.plan_.longest_run);
  waits_ = job_.plan_.has_barrier;
  if (waits_)
    link_->tell(launch::Exchanged{.restart = assignment_->restart,
                                  .entries = {{fmt::format("key {}", assignment_->node_rank), "value"}}});
  if (job_.plan_.asks && random().one_in(2)) link_->tell(launch::ask_of(7, {}));
}

launch::JobStory SimulatedNode::story(bool has_failed) const {
  launch::JobStory story;
  story.job_id = "job";
  story.directory = "/home/ada";
  for (int index = 0; index < plan_.ranks; ++index) {
    launch::RankStory rank;
    rank.local_rank = index;
    rank.rank = (assignment_ ? assignment_->first_rank : 0) + index;
    rank.node_rank = assignment_ ? assignment_->node_rank : 0;
    rank.host = fmt::format("n{}", number_);
    rank.status.pid = 100 + rank.rank;
    rank.status.exited = true;
    rank.status.told_to_end = is_told_;
    rank.status.wait_status = has_failed && index == 0 ? 7 << 8 : 0;
    story.ranks.push_back(rank);
  }
  return story;
}

// Says why, if they do so by themselves, and then that they have.
void SimulatedNode::end_ranks(bool by_themselves) {
  if (by_themselves && waits_) {  // they are in the barrier, which the others have not come to
    end_ = core::Clock::now() + 50ms;
    return;
  }
  if (by_themselves && play_ != Play::end_well) {
    const int restart = assignment_->restart;
    if (play_ == Play::fail)
      link_->tell(launch::Failed{.restart = restart, .rank = assignment_->first_rank, .what = "it fell"});
    if (play_ == Play::interrupt) link_->tell(launch::SignalCame{.signal = SIGTERM});
    if (play_ == Play::reach_limit) link_->tell(launch::limit_passed(EndCause::timed_out, restart));
    is_told_ = play_ != Play::fail;
  }
  const bool has_failed = by_themselves && play_ == Play::fail;
  if (job_.truth_.count_call(number_) > Duration::zero()) core::sleep_for(1ms);
  if (job_.plan_.traces) link_->tell(launch::Traced{.restart = assignment_->restart, .part = "00ff"});
  link_->tell(launch::Ended{.restart = assignment_->restart, .story = launch::story_to_json(story(has_failed))});
  assignment_.reset();
  end_ = Time::max();
}

void NodesJob::meet() {
  net::Listener listener;
  listener.port = kPort;
  listener.sockets.emplace_back(core::scheduler()->listen(kMeetingAddress, kPort));
  launch::serve_meeting(std::move(listener), {.min_nodes = plan_.min_nodes,
                                              .max_nodes = plan_.count(),
                                              .id = "run",
                                              .secret = "sesame",
                                              .job_id = "job",
                                              .host = kMeetingAddress,
                                              .join_timeout = plan_.join_timeout,
                                              .pulse = launch::Pulse(plan_.host_timeout),
                                              .max_restarts = plan_.max_restarts,
                                              .others_may_come = plan_.others_may_come,
                                              .exit_policy = plan_.exit_policy});
}

// ---- What is promised

// In each start, the nodes agree on their numbers: each number once, and the ranks without a gap.
void NodesJob::check_starts() {
  std::map<int, std::map<int, Start>> by_start;
  for (const Start& start : starts_) {
    if (!by_start[start.assignment.restart].emplace(start.assignment.node_rank, start).second)
      problem(fmt::format("start {}: two nodes have number {}", start.assignment.restart, start.assignment.node_rank));
  }
  for (const auto& [number, nodes] : by_start) {
    for (const auto& [rank, start] : nodes) {
      const launch::Assignment& one = start.assignment;
      const launch::Assignment& first = nodes.begin()->second.assignment;
      if (one.nodes != first.nodes || one.world_size != first.world_size || one.ranks_of_nodes != first.ranks_of_nodes)
        problem(fmt::format("start {}: nodes have heard different things", number));
      int before = 0;
      for (int other = 0; other < rank; ++other) before += one.ranks_of_nodes[static_cast<std::size_t>(other)];
      if (one.first_rank != before)
        problem(fmt::format("start {}: node {} begins at {}", number, rank, one.first_rank));
      if (one.nodes < plan_.min_nodes) problem(fmt::format("start {}: {} nodes only", number, one.nodes));
    }
  }
}

void NodesJob::check_end(int node) {
  const Outcome& outcome = outcomes_[static_cast<std::size_t>(node)];
  const bool is_gone = simulator_.state_of(node) == core::ProcessCondition::gone && outcome.ended == Time();
  if (is_gone || truth_.may_be_blamed(node)) return;
  if (!outcome.event) {
    if (is_of_the_plan() && plan_.min_nodes == plan_.count()) problem(fmt::format("node {} has not met anybody", node));
    return;
  }
  const LinkEvent& event = *outcome.event;
  const bool is_other = plan_.nodes[static_cast<std::size_t>(node)].secret != "sesame";
  if (is_other && event.kind == LinkEvent::Kind::done)
    problem(fmt::format("node {} is no member, and is told all", node));
  if (event.kind == LinkEvent::Kind::refused || is_other) return;
  // One that comes late finds a meeting that is just over.
  const bool may_lose =
      truth_.was_store_mute_since(Simulator::kBegin) || plan_.nodes[static_cast<std::size_t>(node)].comes_after > 2s;
  if (event.kind == LinkEvent::Kind::lost && !may_lose)
    problem(fmt::format("node {} has lost the meeting: {}", node, event.why));
  if (event.kind != LinkEvent::Kind::done) return;
  const launch::JobResult& result = event.outcome.result;
  for (const Outcome& other : outcomes_) {
    if (!other.event || other.event->kind != LinkEvent::Kind::done) continue;
    const launch::JobResult& said = other.event->outcome.result;
    if (said.cause != result.cause || said.exit_code != result.exit_code || said.culprit != result.culprit)
      problem(fmt::format("node {} is told {} {}, another {} {}", node, launch::to_string(result.cause),
                          result.exit_code, launch::to_string(said.cause), said.exit_code));
  }
  if (result.cause == EndCause::node_lost && !truth_.any())
    problem(fmt::format("node {}: a node is lost, and none was: {}", node, result.error));
  if (is_of_the_plan() && result.cause == EndCause::none && outcome.starts == 0)
    problem(fmt::format("node {}: the job has ended well without it", node));
}

// Nothing went wrong, and all come in time.
bool NodesJob::is_of_the_plan() const {
  return !truth_.any() && std::ranges::all_of(plan_.nodes, [](const NodePlan& node) {
    return node.comes_after < 4s && node.secret == "sesame";
  });
}

void NodesJob::check() {
  check_starts();
  for (int node = 0; node < plan_.count(); ++node) check_end(node);
  if (!is_of_the_plan() || plan_.min_nodes < plan_.count()) return;
  // All nodes are in all starts: so the plays decide.
  EndCause expected = EndCause::none;
  int starts = 0;
  for (const Play play : plan_.plays) {
    ++starts;
    expected = play == Play::fail          ? EndCause::rank_failed
               : play == Play::interrupt   ? EndCause::interrupted
               : play == Play::reach_limit ? EndCause::timed_out
                                           : EndCause::none;
    if (play != Play::fail || starts > plan_.max_restarts) break;
    expected = EndCause::none;
  }
  for (int node = 0; node < plan_.count(); ++node) {
    const auto& event = outcomes_[static_cast<std::size_t>(node)].event;
    if (!event || event->kind != LinkEvent::Kind::done) continue;
    if (event->outcome.result.cause != expected)
      problem(fmt::format("node {}: the job has ended by {} instead of {}", node,
                          launch::to_string(event->outcome.result.cause), launch::to_string(expected)));
  }
}

JobReport NodesJob::run() {
  for (int node = 0; node < plan_.count(); ++node) {
    const std::string host = fmt::format("host{}", node);
    simulator_.add_process(
        [this, node] {
          auto* const one = new SimulatedNode(*this, node);  // never destroyed if it is killed
          one->live();
          delete one;
        },
        {host, host, "pids", "net"});
  }
  simulator_.add_process([this] { meet(); }, {"host of the meeting", "its boot", "pids", "net"});
  const Simulator::End end = simulator_.run();
  streams_.close();
  if (end == Simulator::End::stuck) problem("all wait for ever:\n" + simulator_.places());
  if (end == Simulator::End::endless) problem("it does not end:\n" + simulator_.places());
  check();
  const bool had_errors = std::ranges::any_of(outcomes_, [](const Outcome& outcome) {
    return !outcome.event || outcome.event->kind != LinkEvent::Kind::done ||
           outcome.event->outcome.result.cause != EndCause::none;
  });
  return {.trace_hash = trace_.hash(),
          .trace_lines = trace_.lines(),
          .switches = simulator_.switches(),
          .simulated_ns = Simulator::ns_of(simulator_.now()),
          .had_faults = truth_.any(),
          .had_errors = had_errors,
          .plan = describe(plan_),
          .problems = problems_};
}

}  // namespace

JobReport simulate_nodes(std::uint64_t seed, int /*draws*/, std::FILE* trace) {
  return (new NodesJob(seed, trace))->run();  // threads of killed nodes may stand in it for ever
}

}  // namespace col::test
