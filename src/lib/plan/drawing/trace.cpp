#include "plan/drawing/trace.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <deque>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <col/plan.hpp>

#include "plan/blocks.hpp"

namespace col::plan::drawing {
namespace {

[[noreturn]] void refuse(const std::string& what) {
  throw Error(ErrorCode::invalid_argument, what);
}

// The content of one rank's buffers, element by element, as runs of elements with equal history.
class Elements {
 public:
  explicit Elements(int rank) : rank_(rank) {}

  std::vector<Fragment> read(const Slice& slice) const;
  // Requires: the parts have slice.count elements together.
  void write(const Slice& slice, std::span<const Fragment> parts);

 private:
  struct Run {
    std::size_t end;
    Fragment part;
  };
  using Runs = std::map<std::size_t, Run>;  // by their first element
  static void cut(Runs& runs, std::size_t at);

  int rank_;
  std::array<Runs, 4> runs_;
};

// Element `by` of a part and those behind it.
Fragment from(Fragment part, std::size_t by) {
  part.place += by;
  part.count -= by;
  return part;
}

std::vector<Fragment> Elements::read(const Slice& slice) const {
  const Runs& runs = runs_[static_cast<std::size_t>(slice.buffer)];
  std::vector<Fragment> parts;
  std::size_t at = slice.offset;
  const std::size_t end = slice.offset + slice.count;
  while (at < end) {
    auto run = runs.upper_bound(at);
    const std::size_t next = run == runs.end() ? end : std::min(end, run->first);
    if (run != runs.begin() && std::prev(run)->second.end > at) {
      --run;
      Fragment part = from(run->second.part, at - run->first);
      part.count = std::min(end, run->second.end) - at;
      parts.push_back(part);
      at += part.count;
    } else {
      // Nobody has written there: the caller's data, or a fault that is not ours to find.
      parts.push_back({.count = next - at, .place = at, .ranks = std::uint64_t{1} << rank_});
      at = next;
    }
  }
  return parts;
}

void Elements::write(const Slice& slice, std::span<const Fragment> parts) {
  Runs& runs = runs_[static_cast<std::size_t>(slice.buffer)];
  cut(runs, slice.offset);
  cut(runs, slice.offset + slice.count);
  runs.erase(runs.lower_bound(slice.offset), runs.lower_bound(slice.offset + slice.count));
  std::size_t at = slice.offset;
  for (const Fragment& part : parts) {
    runs[at] = {at + part.count, part};
    at += part.count;
  }
}

// Makes a run end where it reaches across `at`, and another begin.
void Elements::cut(Runs& runs, std::size_t at) {
  auto run = runs.upper_bound(at);
  if (run == runs.begin()) return;
  --run;
  if (run->first == at || run->second.end <= at) return;
  const Run rest{run->second.end, from(run->second.part, at - run->first)};
  run->second.part.count = at - run->first;
  run->second.end = at;
  runs[at] = rest;
}

// left op right.
std::vector<Fragment> combined(std::span<const Fragment> left, std::span<const Fragment> right) {
  std::vector<Fragment> parts;
  std::size_t l = 0, r = 0;               // parts
  std::size_t in_left = 0, in_right = 0;  // elements of them that are done
  while (l < left.size() && r < right.size()) {
    Fragment part = from(left[l], in_left);
    part.count = std::min(part.count, right[r].count - in_right);
    part.ranks |= right[r].ranks;
    part.payload = Payload::partial;
    parts.push_back(part);
    in_left += part.count;
    in_right += part.count;
    if (in_left == left[l].count) ++l, in_left = 0;
    if (in_right == right[r].count) ++r, in_right = 0;
  }
  return parts;
}

// A rank in the middle of its plan.
struct Walker {
  Plan plan;
  Elements elements;
  std::size_t next = 0;   // round of its plan
  std::size_t round = 0;  // where the present one is in the drawing
  std::size_t last = 0;   // the last round in which a message of the present one goes
  std::size_t open = 0;   // messages of the present one that lack their other end
  bool walking = false;   // in a round
  Round steps = {};
  std::vector<std::vector<Fragment>> arrived = {};  // by receive
};

// One end of a message that waits for the other.
struct End {
  int rank;
  std::size_t receive;  // which one of its round
  std::size_t elements;
  std::size_t order;  // of the send, in all
  std::vector<Fragment> parts;
};

class Tracer {
 public:
  Tracer(const PlanProblem& problem, const PlanOfRank& plans);
  Trace run();

 private:
  void begin(int r);
  void finish(Walker& walker, int r);
  void meet(const End& send, const End& receive);

  std::vector<Walker> walkers_;
  std::map<std::pair<int, int>, std::deque<End>> sends_, receives_;
  std::vector<std::pair<std::size_t, Message>> messages_;  // and their order
  std::size_t order_ = 0;
  Trace trace_;
};

// Where this rank's block of a longer buffer begins; `displacements`: where blocks have counts of their own.
std::size_t place_of_block(const PlanProblem& problem, int r, std::span<const std::size_t> displacements) {
  const auto rank = static_cast<std::size_t>(r);
  return row_of(problem.spec().collective).has_counts() ? displacements[rank] : rank * problem.spec().count;
}

// The input's place in the whole vector, where a rank's input is a block of it.
std::size_t place_of_input(const PlanProblem& problem, int r) {
  if (row_of(problem.spec().collective).in != Extent::block) return 0;
  return place_of_block(problem, r, problem.request(problem.spec().root).out_displacements);
}

// In place: the block of a longer input that contains a rank's output.
std::size_t place_of_output(const PlanProblem& problem, int r) {
  if (row_of(problem.spec().collective).out != Extent::block) return 0;
  return place_of_block(problem, r, problem.request(problem.spec().root).in_displacements);
}

Tracer::Tracer(const PlanProblem& problem, const PlanOfRank& plans) {
  if (problem.size() > kMostRanks)
    refuse(fmt::format("a plan of {} ranks is too large to draw; draw one of {} at most", problem.size(), kMostRanks));
  for (int r = 0; r < problem.size(); ++r) {
    Plan plan = plans(r);
    if (plan.rounds > kMostRounds)
      refuse(
          fmt::format("a plan of {} rounds is too long to draw; draw one of {} at most, for fewer ranks or with "
                      "longer segments",
                      plan.rounds, kMostRounds));
    Walker walker{.plan = std::move(plan), .elements = Elements(r)};
    const std::uint64_t self = std::uint64_t{1} << r;
    const std::size_t place = place_of_input(problem, r);
    const Fragment input{.count = problem.input_count(r), .place = place, .ranks = self};
    const Slice all{Buffer::input, 0, input.count};
    walker.elements.write(all, {&input, 1});
    const Fragment output{.count = problem.output_count(r), .place = place_of_output(problem, r), .ranks = self};
    if (problem.spec().in_place) walker.elements.write({Buffer::output, 0, output.count}, {&output, 1});
    walkers_.push_back(std::move(walker));
  }
}

Trace Tracer::run() {
  for (bool moved = true; moved;) {
    moved = false;
    for (int r = 0; r < static_cast<int>(walkers_.size()); ++r) {
      Walker& walker = walkers_[static_cast<std::size_t>(r)];
      if (walker.walking && walker.open == 0) {
        finish(walker, r);
        moved = true;
      }
      if (!walker.walking && walker.next < walker.plan.rounds) {
        begin(r);
        moved = true;
      }
    }
  }
  for (std::size_t r = 0; r < walkers_.size(); ++r) {
    if (walkers_[r].walking)
      refuse(fmt::format("rank {} waits in round {}, for ever: these plans do not pair; verify() says more", r,
                         walkers_[r].next - 1));
  }
  std::sort(messages_.begin(), messages_.end(), [](const auto& a, const auto& b) {
    const Message& x = a.second;
    const Message& y = b.second;
    if (x.round != y.round) return x.round < y.round;
    return x.from != y.from ? x.from < y.from : a.first < b.first;
  });
  std::map<std::size_t, std::size_t> kept;  // rounds in which somebody sends, and their new numbers
  for (const auto& [order, message] : messages_) kept.emplace(message.round, kept.size());
  trace_.rounds = kept.size();
  for (auto& [order, message] : messages_) {
    message.round = kept[message.round];
    trace_.messages.push_back(std::move(message));
  }
  // A combination without a message belongs to the messages before.
  for (Reduction& reduction : trace_.reductions) {
    const auto after = kept.upper_bound(reduction.round);
    reduction.round = after == kept.begin() ? 0 : std::prev(after)->second;
  }
  return std::move(trace_);
}

void Tracer::begin(int r) {
  Walker& walker = walkers_[static_cast<std::size_t>(r)];
  walker.plan.round(walker.next++, walker.steps);
  walker.walking = true;
  walker.last = walker.round;
  walker.arrived.clear();
  for (const Step& step : walker.steps.steps()) {
    if (!step.is_message()) continue;
    const bool sends = step.kind == Step::Kind::send;
    if (step.peer < 0 || step.peer >= static_cast<int>(walkers_.size()))
      refuse(fmt::format("rank {} has a message for rank {}, and the ranks are 0 to {}", r, step.peer,
                         walkers_.size() - 1));
    ++walker.open;
    End end{.rank = r,
            .receive = walker.arrived.size(),
            .elements = sends ? step.left.count : step.to.count,
            .order = order_++,
            .parts = {}};
    if (sends)
      end.parts = walker.elements.read(step.left);
    else
      walker.arrived.emplace_back();
    const auto pair = sends ? std::pair(r, step.peer) : std::pair(step.peer, r);
    std::deque<End>& others = (sends ? receives_ : sends_)[pair];
    if (others.empty()) {
      (sends ? sends_ : receives_)[pair].push_back(std::move(end));
      continue;
    }
    const End other = std::move(others.front());
    others.pop_front();
    sends ? meet(end, other) : meet(other, end);
  }
}

void Tracer::meet(const End& send, const End& receive) {
  if (send.elements != receive.elements)
    refuse(
        fmt::format("rank {} sends {} elements to rank {}, which awaits {}: these plans do not pair; verify() says "
                    "more",
                    send.rank, send.elements, receive.rank, receive.elements));
  Walker& from = walkers_[static_cast<std::size_t>(send.rank)];
  Walker& to = walkers_[static_cast<std::size_t>(receive.rank)];
  Message message{.from = send.rank, .to = receive.rank, .round = std::max(from.round, to.round), .parts = send.parts};
  for (const Fragment& part : message.parts) message.payload = std::max(message.payload, part.payload);
  to.arrived[receive.receive] = message.parts;
  for (Walker* walker : {&from, &to}) {
    walker->last = std::max(walker->last, message.round);
    --walker->open;
  }
  messages_.emplace_back(send.order, std::move(message));
}

void Tracer::finish(Walker& walker, int r) {
  std::size_t receive = 0;
  for (const Step& step : walker.steps.steps()) {
    if (step.kind == Step::Kind::recv) walker.elements.write(step.to, walker.arrived[receive++]);
  }
  bool reduces = false;
  for (const Step& step : walker.steps.steps()) {
    if (step.is_message()) continue;
    std::vector<Fragment> parts = walker.elements.read(step.left);
    if (step.kind == Step::Kind::reduce) parts = combined(parts, walker.elements.read(step.right));
    if (step.kind == Step::Kind::convert) {
      for (Fragment& part : parts) part.payload = Payload::finished;
    }
    reduces = reduces || step.kind == Step::Kind::reduce;
    walker.elements.write(step.to, parts);
  }
  if (reduces) trace_.reductions.push_back({r, walker.last});
  walker.round = walker.last + 1;
  walker.walking = false;
}

}  // namespace

Trace trace(const PlanProblem& problem, const PlanOfRank& plans) {
  return Tracer(problem, plans).run();
}

}  // namespace col::plan::drawing
