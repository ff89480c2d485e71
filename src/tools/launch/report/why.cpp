#include "launch/report/why.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>  // join

#include "common/text.hpp"
#include "launch/report/rank_words.hpp"
#include "launch/report/wait_graph.hpp"

namespace col::launch {
namespace {

using Cause = Why::Cause;
using Indices = std::vector<std::size_t>;

// A sentence stays readable.
constexpr std::size_t kMaxParts = 4;

// ", for 14.0 s"; empty if it is not known.
std::string lasting(double seconds) {
  return seconds > 0 ? fmt::format(", for {}", tools::in_words(seconds)) : "";
}

// " (1,000 float32)"
std::string elements(const CallDetails& details) {
  if (details.dtype == DType::bytes || details.count == 0) return "";
  return fmt::format(" ({} {})", tools::grouped(details.count), to_string(details.dtype));
}

// ", and 3.1 GiB of its memory are swapped out"; empty if nothing is in its way.
std::string burdened(const Burden& burden) {
  std::string text;
  if (burden.is_swapping())
    text = fmt::format(", and {} of its memory are swapped out: this host has too little",
                       describe_bytes(burden.swapped_bytes));
  if (burden.waits_for_disk) text += ", and waits in the kernel for a disk or a file system";
  return text;
}

}  // namespace

std::string describe_call(const RankActivity& call) {
  if (is_join(call)) return fmt::format("the making of {}", name_group(call));
  std::string text = name_call(call);
  if (is_message(call) && call.details.partner >= 0) {
    const bool receives = call.op.find("recv") != std::string::npos && call.op != "sendrecv";
    const bool sends = call.op.ends_with("send");
    if (receives || sends)
      text += fmt::format(" of a message with tag {} {} rank {}", call.details.tag, receives ? "from" : "to",
                          call.details.partner);
  } else if (is_message(call) && call.details.tag >= 0 && call.op.find("any") != std::string::npos) {
    text += fmt::format(" of a message with tag {}", call.details.tag);
  }
  return fmt::format("{} of {}{}", text, name_group(call), is_message(call) ? "" : elements(call.details));
}

std::string describe_fully(const RankActivity& call) {
  return describe_call(call) + (call.names.label.empty() ? "" : fmt::format(", '{}'", call.names.label)) +
         (call.place.empty() ? "" : ", called in " + call.place);
}

namespace {

class Explanation {
 public:
  explicit Explanation(const JobStory& story) : graph_(story) {}

  Why take() {
    for (std::size_t i = 0; i < graph_.size(); ++i) {
      if (!graph_.waits(i)) continue;
      why_.waiting.push_back(graph_.rank(i).rank);
      why_.seconds = std::max(why_.seconds, graph_.since(i));
    }
    std::ranges::sort(why_.waiting);
    if (why_.waiting.empty()) {
      why_.sentence = "no rank waits for another";
      return std::move(why_);
    }
    const Indices ends = graph_.ends();
    const bool is_hopeless = !ends.empty() && (graph_.state(ends.front()) == RankState::dead ||
                                               graph_.state(ends.front()) == RankState::stopped);
    if (is_hopeless)
      say_ends(ends);
    else if (const auto different = graph_.different())
      say_different(different->first, different->second);
    else if (const auto wrong = graph_.wrong_tag())
      say_wrong_tag(*wrong);
    else if (!ends.empty())
      say_ends(ends);
    else if (const Indices circle = graph_.circle(); !circle.empty())
      say_circle(circle);
    else
      say_moves();
    return std::move(why_);
  }

 private:
  const RankActivity& call(std::size_t index) const { return *graph_.rank(index).last; }
  std::string named(std::size_t index) const {
    const RankStory& rank = graph_.rank(index);
    if (rank.status.pid == 0) return fmt::format("rank {}", rank.rank);
    const std::string host = graph_.story().nodes > 1 ? ", host " + tools::one_line(rank.host) : "";
    return fmt::format("rank {} (pid {}{})", rank.rank, rank.status.pid, host);
  }
  std::string names(const Indices& indices) const {
    std::vector<int> ranks;
    for (const std::size_t i : indices) ranks.push_back(graph_.rank(i).rank);
    std::ranges::sort(ranks);
    return name_ranks(ranks);
  }
  void blame(const Indices& indices) {
    for (const std::size_t i : indices) why_.culprits.push_back(graph_.rank(i).rank);
  }

  void say_ends(const Indices& ends);
  void say_different(std::size_t differs, std::size_t other);
  void say_wrong_tag(const WrongTag& wrong);
  void say_circle(const Indices& circle);
  void say_moves();
  std::string name_silent();
  std::string who_waits(const Indices& ranks) const;
  std::string what_it_does(std::size_t end, const RankActivity& missed) const;
  std::string what_they_do(const RankActivity& missed) const;
  std::string last_of(std::size_t index, const RankActivity& missed) const;
  std::string others(const std::set<std::size_t>& behind, const Indices& direct) const;
  Cause cause_of(std::size_t end, const RankActivity& missed) const;

  WaitGraph graph_;
  Why why_;
};

// "ranks 0-2 have waited for 14.0 s in allreduce #417 of group 'dp'": all in the same call.
std::string Explanation::who_waits(const Indices& ranks) const {
  double seconds = 0;
  for (const std::size_t i : ranks) seconds = std::max(seconds, graph_.since(i));
  const std::string how_long = seconds > 0 ? fmt::format(" for {}", tools::in_words(seconds)) : "";
  // Their labels and places may differ.
  const std::string what = describe_fully(call(ranks.front()));
  const bool same = std::ranges::all_of(ranks, [&](std::size_t i) { return describe_fully(call(i)) == what; });
  return fmt::format("{} {} waited{} in {}", names(ranks), ranks.size() == 1 ? "has" : "have", how_long,
                     same ? what : describe_call(call(ranks.front())));
}

Cause Explanation::cause_of(std::size_t end, const RankActivity& missed) const {
  switch (graph_.state(end)) {
    case RankState::dead:
      return Cause::dead;
    case RankState::stopped:
      return Cause::stopped;
    case RankState::left:
      return Cause::left;
    default:
      break;
  }
  const auto reached = graph_.progress(end, missed.group);
  const bool has_come = !is_message(missed) && reached && *reached >= missed.sequence && missed.sequence > 0;
  return has_come && graph_.has_open(end, missed.group, missed.sequence) ? Cause::not_waited : Cause::own_code;
}

// " (last: barrier #416)"
std::string Explanation::last_of(std::size_t index, const RankActivity& missed) const {
  const auto& last = graph_.rank(index).last;
  if (!last || last->op.empty()) return "";
  const auto reached = graph_.progress(index, missed.group);
  std::string text = is_join(*last) ? "the making of " + name_group(*last) : name_call(*last);
  if (last->group != missed.group && !is_join(*last)) text += " of " + name_group(*last);
  const std::uint64_t next = reached.value_or(missed.sequence) + 1;
  if (graph_.has_open(index, last->group, last->sequence)) text += ", in flight";
  if (!is_message(missed) && missed.sequence > next)
    text += fmt::format("; {} calls behind", missed.sequence - next + 1);
  return fmt::format(" (last: {})", text);
}

// What the end of the chain does in place of `missed`.
std::string Explanation::what_it_does(std::size_t end, const RankActivity& missed) const {
  const RankStory& rank = graph_.rank(end);
  const bool in_missed = rank.last && rank.last->group == missed.group && rank.last->sequence == missed.sequence &&
                         !is_message(missed) && !rank.last->op.empty();
  switch (cause_of(end, missed)) {
    case Cause::dead:
      return (rank.status.exited ? (rank.last && rank.status.wait_status == 0
                                        ? std::string("has ended with code 0 and without col::finalize()")
                                        : describe_wait_status(rank.status.wait_status))
                                 : std::string("has ended without col::finalize()")) +
             last_of(end, missed);
    case Cause::stopped:
      return fmt::format("stands still: a signal (SIGSTOP, ^Z) or a debugger has stopped it{}",
                         in_missed ? " in that call" : last_of(end, missed));
    case Cause::left:
      return fmt::format("has left by col::finalize(){}", last_of(end, missed));
    case Cause::not_waited:
      return fmt::format("has started it and does not wait for it: it is in its own code{}",
                         lasting(graph_.since(end)));
    default:
      break;
  }
  if (!rank.last || rank.last->state == RankActivity::State::absent) {
    return "has not joined the job: it is in its own code";
  }
  const std::string own_code = fmt::format("it is in its own code{}{}{}", lasting(graph_.since(end)),
                                           last_of(end, missed), burdened(rank.burden));
  if (in_missed && graph_.state(end) == RankState::inside)
    return fmt::format("is in it, and in none of col's waits{}", lasting(graph_.since(end)));
  // A rank that computes while an operation of it is in flight is in no call.
  const bool is_in_call =
      graph_.state(end) == RankState::inside && !graph_.has_open(end, rank.last->group, rank.last->sequence);
  if (is_in_call)
    return fmt::format("has not come to it: it is in {}, and in none of col's waits{}", describe_call(*rank.last),
                       lasting(graph_.since(end)));
  if (is_join(missed)) return "has not come to it: " + own_code;
  if (!is_message(missed)) return (in_missed ? "has done its part: " : "has not called it: ") + own_code;
  if (missed.op.ends_with("send") && missed.op != "sendrecv") return "does not receive it: " + own_code;
  if (missed.op.find("recv") != std::string::npos && missed.op != "sendrecv") return "has not sent it: " + own_code;
  return "does not take part: " + own_code;
}

// "; rank 4 waits for rank 1 in barrier #2 of group 'columns'"
std::string Explanation::others(const std::set<std::size_t>& behind, const Indices& direct) const {
  std::map<std::pair<std::string, std::string>, Indices> parts;  // by call and whom they wait for
  for (const std::size_t i : behind) {
    if (std::ranges::find(direct, i) != direct.end()) continue;
    parts[{describe_call(call(i)), name_ranks(graph_.awaited_by(i))}].push_back(i);
  }
  std::string text;
  std::size_t said = 0, left = 0;
  for (const auto& [what, ranks] : parts) {
    if (said++ < kMaxParts)
      text += fmt::format("; {} {} for {} in {}", names(ranks), ranks.size() == 1 ? "waits" : "wait", what.second,
                          what.first);
    else
      left += ranks.size();
  }
  return left > 0 ? text + fmt::format("; so do {}", tools::counted(left, "other rank")) : text;
}

void Explanation::say_ends(const Indices& ends) {
  const std::size_t end = ends.front();
  // Who waits for it by a call that it lacks; in the first of these calls, if there are several.
  Indices direct;
  for (const WaitEdge& edge : graph_.edges()) {
    if (edge.to == end) direct.push_back(edge.from);
  }
  const auto key = [&](std::size_t i) { return std::pair(call(i).group, describe_call(call(i))); };
  std::ranges::sort(direct, [&](std::size_t a, std::size_t b) { return graph_.since(a) > graph_.since(b); });
  const auto first = key(direct.front());
  std::erase_if(direct, [&](std::size_t i) { return key(i) != first; });
  const RankActivity& missed = call(direct.front());
  why_.cause = cause_of(end, missed);
  // All that are away from the same call in the same way.
  Indices alike;
  for (const std::size_t other : ends) {
    const bool is_awaited = std::ranges::any_of(
        graph_.edges(), [&](const WaitEdge& edge) { return edge.to == other && edge.from == direct.front(); });
    if (is_awaited && cause_of(other, missed) == why_.cause) alike.push_back(other);
  }
  blame(alike);
  const std::string what =
      alike.size() == 1 ? named(end) + " " + what_it_does(end, missed) : names(alike) + " " + what_they_do(missed);
  std::set<std::size_t> behind;
  for (const std::size_t one : alike) behind.merge(graph_.behind(one));
  why_.sentence = fmt::format("{}: {}{}", who_waits(direct), what, others(behind, direct));
}

std::string Explanation::what_they_do(const RankActivity& missed) const {
  switch (why_.cause) {
    case Cause::dead:
      return "are dead";
    case Cause::stopped:
      return "stand still: a signal (SIGSTOP, ^Z) or a debugger has stopped them";
    case Cause::left:
      return "have left by col::finalize()";
    case Cause::not_waited:
      return "have started it and do not wait for it: they are in their own code";
    default:
      return is_message(missed) ? "have sent none: they are in their own code"
                                : "have not called it: they are in their own code";
  }
}

void Explanation::say_different(std::size_t differs, std::size_t other) {
  why_.cause = Cause::calls_differ;
  blame({differs});
  const std::string one = describe_call(call(differs)), two = describe_call(call(other));
  why_.sentence = one == two
                      ? fmt::format(
                            "{} and rank {} are both in {}, and differ in what they called there or before: all ranks "
                            "of a group must make the same calls",
                            named(differs), graph_.rank(other).rank, one)
                      : fmt::format("{} is in {}, and rank {} in {}: all ranks of a group must make the same calls",
                                    named(differs), one, graph_.rank(other).rank, two);
}

void Explanation::say_wrong_tag(const WrongTag& wrong) {
  why_.cause = Cause::wrong_tag;
  blame({wrong.sender});
  const std::string tags =
      fmt::format("{} {}", wrong.tags.size() == 1 ? "one with tag" : "messages with tags", fmt::join(wrong.tags, ", "));
  why_.sentence = fmt::format("{}: {} {} {}, which nobody receives", who_waits({wrong.receiver}), named(wrong.sender),
                              wrong.sender_waits ? "waits to send" : "has sent", tags);
}

void Explanation::say_circle(const Indices& circle) {
  why_.cause = Cause::circle;
  blame(circle);
  std::ranges::sort(why_.culprits);
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < circle.size() && i < kMaxParts; ++i) {
    const std::size_t next = circle[(i + 1) % circle.size()];
    parts.push_back(fmt::format("rank {} for rank {} in {}", graph_.rank(circle[i]).rank, graph_.rank(next).rank,
                                describe_call(call(circle[i]))));
  }
  if (circle.size() > kMaxParts) parts.push_back(fmt::format("and so on, through {} ranks", circle.size()));
  why_.sentence = fmt::format("{} wait for one another in a circle{}: {}", names(circle),
                              lasting(graph_.since(circle.front())), fmt::join(parts, "; "));
}

void Explanation::say_moves() {
  why_.cause = Cause::moves;
  std::map<std::string, Indices> calls;
  for (std::size_t i = 0; i < graph_.size(); ++i) {
    if (graph_.waits(i)) calls[describe_call(call(i))].push_back(i);
  }
  std::vector<std::string> parts;
  for (const auto& [what, ranks] : calls) {
    if (parts.size() < kMaxParts) parts.push_back(who_waits(ranks));
  }
  const std::string silent = name_silent();
  if (!silent.empty()) why_.cause = Cause::no_answer;
  why_.sentence = fmt::format(
      "{}: {}", fmt::join(parts, "; "),
      silent.empty() ? "nobody whom these records show is missing"
                     : silent + (graph_.story().silent.size() == 1 ? " does not answer" : " do not answer") +
                           ": dead or frozen, or cut off");
}

// "host n2 (node 1, ranks 2-3)", who is to blame then.
std::string Explanation::name_silent() {
  std::vector<std::string> parts;
  for (const SilentNode& node : graph_.story().silent) {
    for (int rank = node.first_rank; rank < node.first_rank + node.ranks; ++rank) why_.culprits.push_back(rank);
    parts.push_back(name_silent_node(node));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace

std::string_view to_string(Why::Cause cause) noexcept {
  constexpr std::array<std::string_view, 11> kNames = {"nothing",      "moves",  "own_code", "not_waited",
                                                       "stopped",      "left",   "dead",     "wrong_tag",
                                                       "calls_differ", "circle", "no_answer"};
  return kNames[std::min<std::size_t>(static_cast<std::size_t>(cause), kNames.size() - 1)];
}

Why why(const JobStory& story) {
  return Explanation(story).take();
}

}  // namespace col::launch
