#include "mutations.hpp"

#include <algorithm>
#include <utility>

namespace col::test {
namespace {

using Kind = Step::Kind;
using Steps = std::vector<Step>;

bool is_empty(const Step& step) {
  return step.to.count == 0 && step.left.count == 0;
}

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

void erase(Steps& steps, std::size_t at) {
  steps.erase(steps.begin() + static_cast<std::ptrdiff_t>(at));
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

// The peer waits for ever, or takes the next message for this one and then waits.
bool drop_send(const Victim&, Steps& steps, std::size_t at) {
  if (steps[at].kind != Kind::send) return false;
  erase(steps, at);
  return true;
}

bool drop_recv(const Victim&, Steps& steps, std::size_t at) {
  if (steps[at].kind != Kind::recv) return false;
  erase(steps, at);
  return true;
}

// To a rank that expects one message less than it gets.
bool swap_peer(const Victim& victim, Steps& steps, std::size_t at) {
  if (steps[at].kind != Kind::send || victim.problem.size() < 3) return false;
  const int old = steps[at].peer;
  do {
    steps[at].peer = (steps[at].peer + 1) % victim.problem.size();
  } while (steps[at].peer == old || steps[at].peer == victim.rank);
  return true;
}

bool send_to_itself(const Victim& victim, Steps& steps, std::size_t at) {
  if (steps[at].kind != Kind::send) return false;
  steps[at].peer = victim.rank;
  return true;
}

bool send_outside(const Victim& victim, Steps& steps, std::size_t at) {
  if (steps[at].kind != Kind::send) return false;
  steps[at].peer = victim.problem.size();
  return true;
}

bool shift_send(const Victim& victim, Steps& steps, std::size_t at) {
  return steps[at].kind == Kind::send && shift(victim, steps[at].left);
}

bool shift_recv(const Victim& victim, Steps& steps, std::size_t at) {
  return steps[at].kind == Kind::recv && shift(victim, steps[at].to);
}

bool shift_left(const Victim& victim, Steps& steps, std::size_t at) {
  return steps[at].kind == Kind::reduce && shift(victim, steps[at].left);
}

bool shift_right(const Victim& victim, Steps& steps, std::size_t at) {
  return steps[at].kind == Kind::reduce && shift(victim, steps[at].right);
}

bool shorten_send(const Victim&, Steps& steps, std::size_t at) {
  if (steps[at].kind != Kind::send || steps[at].left.empty()) return false;
  --steps[at].left.count;
  return true;
}

bool shorten_recv(const Victim&, Steps& steps, std::size_t at) {
  if (steps[at].kind != Kind::recv || steps[at].to.empty()) return false;
  --steps[at].to.count;
  return true;
}

// All three slices: the last element stays as it was.
bool shorten_reduce(const Victim&, Steps& steps, std::size_t at) {
  if (steps[at].kind != Kind::reduce || is_empty(steps[at])) return false;
  --steps[at].to.count;
  --steps[at].left.count;
  --steps[at].right.count;
  return true;
}

bool unequal_reduce(const Victim&, Steps& steps, std::size_t at) {
  if (steps[at].kind != Kind::reduce || is_empty(steps[at])) return false;
  --steps[at].right.count;
  return true;
}

// The right operand is in it twice.
bool double_reduce(const Victim&, Steps& steps, std::size_t at) {
  if (steps[at].kind != Kind::reduce || is_empty(steps[at]) || steps[at].to == steps[at].right) return false;
  Step again = steps[at];
  again.left = again.to;
  steps.insert(steps.begin() + static_cast<std::ptrdiff_t>(at) + 1, again);
  return true;
}

bool drop_reduce(const Victim&, Steps& steps, std::size_t at) {
  if (steps[at].kind != Kind::reduce || is_empty(steps[at])) return false;
  erase(steps, at);
  return true;
}

// Where the operator need not commute. Good by its own rules where the algorithm declares `any`.
bool swap_operands(const Victim& victim, Steps& steps, std::size_t at) {
  if (steps[at].kind != Kind::reduce || is_empty(steps[at]) || victim.order == FoldOrder::any) return false;
  std::swap(steps[at].left, steps[at].right);
  return true;
}

bool drop_convert(const Victim&, Steps& steps, std::size_t at) {
  if (steps[at].kind != Kind::convert || is_empty(steps[at]) || steps[at].to == steps[at].left) return false;
  erase(steps, at);
  return true;
}

bool convert_to_copy(const Victim&, Steps& steps, std::size_t at) {
  if (steps[at].kind != Kind::convert || is_empty(steps[at])) return false;
  steps[at].kind = Kind::copy;
  return true;
}

bool double_convert(const Victim&, Steps& steps, std::size_t at) {
  if (steps[at].kind != Kind::convert || is_empty(steps[at])) return false;
  Step again = steps[at];
  again.left = again.to;
  steps.insert(steps.begin() + static_cast<std::ptrdiff_t>(at) + 1, again);
  return true;
}

bool convert_early(const Victim&, Steps& steps, std::size_t at) {
  if (steps[at].kind != Kind::reduce || is_empty(steps[at])) return false;
  Step convert{.kind = Kind::convert, .to = steps[at].to, .left = steps[at].to};
  steps.insert(steps.begin() + static_cast<std::ptrdiff_t>(at) + 1, convert);
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
  if (steps[at].kind != Kind::recv || steps[at].to.empty() || victim.order == FoldOrder::any) return false;
  for (std::size_t i = at + 1; i < steps.size(); ++i) {
    if (steps[i].kind != Kind::recv || steps[i].to.count != steps[at].to.count) continue;
    std::swap(steps[i].to, steps[at].to);
    return true;
  }
  return false;
}

bool overlap_receives(const Victim&, Steps& steps, std::size_t at) {
  if (steps[at].kind != Kind::recv || steps[at].to.empty()) return false;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (i == at || steps[i].kind != Kind::recv || steps[i].to.count != steps[at].to.count) continue;
    steps[at].to = steps[i].to;
    return true;
  }
  return false;
}

bool receive_over_send(const Victim&, Steps& steps, std::size_t at) {
  if (steps[at].kind != Kind::recv || steps[at].to.empty()) return false;
  for (const Step& other : steps) {
    if (other.kind != Kind::send || other.left.count < steps[at].to.count || other.left.buffer == Buffer::input)
      continue;
    steps[at].to = other.left.part(0, steps[at].to.count);
    return true;
  }
  return false;
}

bool round_a_partial(const Victim& victim, Steps& steps, std::size_t at) {
  if (steps[at].kind != Kind::reduce || !victim.problem.spec().widens || steps[at].to.count > kSpareScratch)
    return false;
  steps[at].to = {Buffer::scratch, victim.plan.scratch, steps[at].to.count};
  return true;
}

bool overlap_operand(const Victim& victim, Steps& steps, std::size_t at) {
  if (steps[at].kind != Kind::reduce || steps[at].to.count < 2) return false;
  Slice left = steps[at].to;
  if (!shift(victim, left)) return false;
  steps[at].left = left;
  return true;
}

// A message that nobody expects.
bool double_send(const Victim&, Steps& steps, std::size_t at) {
  if (steps[at].kind != Kind::send) return false;
  steps.push_back(steps[at]);
  return true;
}

}  // namespace

std::vector<Mutation> mutations() {
  return {
      {"a send is dropped", drop_send},
      {"a receive is dropped", drop_recv},
      {"a send goes to another rank", swap_peer},
      {"a send goes to its own rank", send_to_itself},
      {"a send goes to no rank", send_outside},
      {"a send is made twice", double_send},
      {"a send is off by one", shift_send},
      {"a receive is off by one", shift_recv},
      {"a left operand is off by one", shift_left},
      {"a right operand is off by one", shift_right},
      {"a send is short", shorten_send},
      {"a receive is short", shorten_recv},
      {"a reduce is short", shorten_reduce},
      {"a reduce has unequal operands", unequal_reduce},
      {"a reduce is made twice", double_reduce},
      {"a reduce is dropped", drop_reduce},
      {"operands are swapped", swap_operands},
      {"an operand overlaps the result", overlap_operand},
      {"a convert is dropped", drop_convert},
      {"a convert is but a copy", convert_to_copy},
      {"a convert is made twice", double_convert},
      {"a convert comes early", convert_early},
      {"an input is written", write_input},
      {"a slice ends outside", beyond_the_end},
      {"unset memory is read", read_unset},
      {"receives are swapped", swap_receives},
      {"receives overlap", overlap_receives},
      {"a receive overlaps a send", receive_over_send},
      {"a partial result is rounded", round_a_partial},
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
