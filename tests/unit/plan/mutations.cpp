#include "mutations.hpp"

#include <algorithm>
#include <utility>

namespace col::test {
namespace {

using Kind = Step::Kind;
using Steps = std::vector<Step>;

std::size_t count_of(const Victim& victim, Buffer buffer) {
  switch (buffer) {
    case Buffer::input:
      return victim.problem.input_count(victim.rank);
    case Buffer::output:
      return victim.problem.output_count(victim.rank);
    case Buffer::scratch:
      return victim.plan.scratch;
    default:
      return victim.plan.wide;
  }
}

// One element to the left or right, where there is one; no good plan reads the same data there.
bool shift(const Victim& victim, Slice& slice) {
  if (slice.empty()) return false;
  if (slice.offset + slice.count < count_of(victim, slice.buffer))
    ++slice.offset;
  else if (slice.offset > 0)
    --slice.offset;
  else
    return false;
  return true;
}

template <Slice Step::*kSlice>
bool shift_one(const Victim& victim, Steps& steps, std::size_t at) {
  return shift(victim, steps[at].*kSlice);
}

// The last element of each of them is left out.
template <Slice Step::*... kSlices>
bool shorten(const Victim&, Steps& steps, std::size_t at) {
  (--(steps[at].*kSlices).count, ...);
  return true;
}

bool drop(const Victim&, Steps& steps, std::size_t at) {
  steps.erase(steps.begin() + static_cast<std::ptrdiff_t>(at));
  return true;
}

void insert_after(Steps& steps, std::size_t at, const Step& step) {
  steps.insert(steps.begin() + static_cast<std::ptrdiff_t>(at) + 1, step);
}

// With its own result as its left operand.
bool repeat(const Victim&, Steps& steps, std::size_t at) {
  Step again = steps[at];
  again.left = again.to;
  insert_after(steps, at, again);
  return true;
}

// To a rank that expects one message less than it gets.
bool swap_peer(const Victim& victim, Steps& steps, std::size_t at) {
  if (victim.problem.size() < 3) return false;
  const int old = steps[at].peer;
  do {
    steps[at].peer = (steps[at].peer + 1) % victim.problem.size();
  } while (steps[at].peer == old || steps[at].peer == victim.rank);
  return true;
}

bool send_to_itself(const Victim& victim, Steps& steps, std::size_t at) {
  steps[at].peer = victim.rank;
  return true;
}

bool send_outside(const Victim& victim, Steps& steps, std::size_t at) {
  steps[at].peer = victim.problem.size();
  return true;
}

// A message that nobody expects.
bool double_send(const Victim&, Steps& steps, std::size_t at) {
  steps.push_back(steps[at]);
  return true;
}

// The right operand is in it twice.
bool double_reduce(const Victim& victim, Steps& steps, std::size_t at) {
  return steps[at].to != steps[at].right && repeat(victim, steps, at);
}

// Where the operator need not commute. Good by its own rules where the algorithm declares `any`.
bool swap_operands(const Victim& victim, Steps& steps, std::size_t at) {
  std::swap(steps[at].left, steps[at].right);
  return victim.order != FoldOrder::any;
}

bool overlap_operand(const Victim& victim, Steps& steps, std::size_t at) {
  if (steps[at].to.count < 2) return false;
  steps[at].left = steps[at].to;
  return shift(victim, steps[at].left);
}

bool drop_convert(const Victim& victim, Steps& steps, std::size_t at) {
  return steps[at].to != steps[at].left && drop(victim, steps, at);
}

bool convert_to_copy(const Victim&, Steps& steps, std::size_t at) {
  steps[at].kind = Kind::copy;
  return true;
}

bool convert_early(const Victim&, Steps& steps, std::size_t at) {
  insert_after(steps, at, {.kind = Kind::convert, .to = steps[at].to, .left = steps[at].to});
  return true;
}

bool write_input(const Victim& victim, Steps& steps, std::size_t at) {
  if (steps[at].kind == Kind::send || steps[at].to.empty()) return false;
  if (steps[at].to.count > victim.problem.input_count(victim.rank)) return false;
  steps[at].to = {Buffer::input, 0, steps[at].to.count};
  return true;
}

bool beyond_the_end(const Victim& victim, Steps& steps, std::size_t at) {
  Slice& slice = steps[at].kind == Kind::send ? steps[at].left : steps[at].to;
  if (slice.empty()) return false;
  slice.offset = count_of(victim, slice.buffer) - slice.count + 1;
  return slice.buffer != Buffer::scratch;  // which has some to spare
}

bool read_unset(const Victim& victim, Steps& steps, std::size_t at) {
  Slice& left = steps[at].left;
  if (left.empty() || left.count > kSpareScratch) return false;
  if (steps[at].kind == Kind::send && victim.problem.spec().widens && left.buffer == Buffer::wide) return false;
  left = {Buffer::scratch, victim.plan.scratch, left.count};
  return true;
}

// Data of one peer goes where that of another should. Where the operator commutes, that may be as good.
bool swap_receives(const Victim& victim, Steps& steps, std::size_t at) {
  if (victim.order == FoldOrder::any) return false;
  for (std::size_t i = at + 1; i < steps.size(); ++i) {
    if (steps[i].kind != Kind::recv || steps[i].to.count != steps[at].to.count) continue;
    std::swap(steps[i].to, steps[at].to);
    return true;
  }
  return false;
}

bool overlap_receives(const Victim&, Steps& steps, std::size_t at) {
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (i == at || steps[i].kind != Kind::recv || steps[i].to.count != steps[at].to.count) continue;
    steps[at].to = steps[i].to;
    return true;
  }
  return false;
}

bool receive_over_send(const Victim&, Steps& steps, std::size_t at) {
  for (const Step& other : steps) {
    if (other.kind != Kind::send || other.left.count < steps[at].to.count || other.left.buffer == Buffer::input)
      continue;
    steps[at].to = other.left.part(0, steps[at].to.count);
    return true;
  }
  return false;
}

bool round_a_partial(const Victim& victim, Steps& steps, std::size_t at) {
  if (!victim.problem.spec().widens || steps[at].to.count > kSpareScratch) return false;
  steps[at].to = {Buffer::scratch, victim.plan.scratch, steps[at].to.count};
  return true;
}

// The steps that a fault is planted into.
bool any_step(const Step&) {
  return true;
}
template <Kind kKind>
bool is(const Step& step) {
  return step.kind == kKind;
}
template <Kind kKind>
bool moves(const Step& step) {
  return is<kKind>(step) && !(step.to.empty() && step.left.empty());
}

}  // namespace

std::vector<Mutation> mutations() {
  return {
      // The peer waits for ever, or takes the next message for this one and then waits.
      {"a send is dropped", is<Kind::send>, drop},
      {"a receive is dropped", is<Kind::recv>, drop},
      {"a send goes to another rank", is<Kind::send>, swap_peer},
      {"a send goes to its own rank", is<Kind::send>, send_to_itself},
      {"a send goes to no rank", is<Kind::send>, send_outside},
      {"a send is made twice", is<Kind::send>, double_send},
      {"a send is off by one", is<Kind::send>, shift_one<&Step::left>},
      {"a receive is off by one", is<Kind::recv>, shift_one<&Step::to>},
      {"a left operand is off by one", is<Kind::reduce>, shift_one<&Step::left>},
      {"a right operand is off by one", is<Kind::reduce>, shift_one<&Step::right>},
      {"a send is short", moves<Kind::send>, shorten<&Step::left>},
      {"a receive is short", moves<Kind::recv>, shorten<&Step::to>},
      {"a reduce is short", moves<Kind::reduce>, shorten<&Step::to, &Step::left, &Step::right>},
      {"a reduce has unequal operands", moves<Kind::reduce>, shorten<&Step::right>},
      {"a reduce is made twice", moves<Kind::reduce>, double_reduce},
      {"a reduce is dropped", moves<Kind::reduce>, drop},
      {"operands are swapped", moves<Kind::reduce>, swap_operands},
      {"an operand overlaps the result", is<Kind::reduce>, overlap_operand},
      {"a convert is dropped", moves<Kind::convert>, drop_convert},
      {"a convert is but a copy", moves<Kind::convert>, convert_to_copy},
      {"a convert is made twice", moves<Kind::convert>, repeat},
      {"a convert comes early", moves<Kind::reduce>, convert_early},
      {"an input is written", any_step, write_input},
      {"a slice ends outside", any_step, beyond_the_end},
      {"unset memory is read", any_step, read_unset},
      {"receives are swapped", moves<Kind::recv>, swap_receives},
      {"receives overlap", moves<Kind::recv>, overlap_receives},
      {"a receive overlaps a send", moves<Kind::recv>, receive_over_send},
      {"a partial result is rounded", is<Kind::reduce>, round_a_partial},
  };
}

PlanOfRank with_round(PlanOfRank plans, int rank, std::size_t round, std::vector<Step> steps) {
  return [plans = std::move(plans), rank, round, steps = std::move(steps)](int of) {
    Plan plan = plans(of);
    if (of != rank) return plan;
    plan.scratch += kSpareScratch;
    plan.generate = [generate = std::move(plan.generate), round, steps](std::size_t index, Round& out) {
      if (index != round) return generate(index, out);
      for (const Step& step : steps) out.add(step);
    };
    return plan;
  };
}

}  // namespace col::test
