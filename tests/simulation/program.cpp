#include "simulation/program.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include <col/collective.hpp>

#include "simulation/fine_channel.hpp"
#include "support/collectives.hpp"

namespace col::test {
namespace {

using Kind = Step::Kind;

constexpr std::array kCollectives = {Collective::allreduce, Collective::reduce,   Collective::broadcast,
                                     Collective::allgather, Collective::gather,   Collective::reduce_scatter,
                                     Collective::scatter,   Collective::alltoall, Collective::scan,
                                     Collective::exscan,    Collective::barrier};

Step choose_call(Random& random, int group) {
  Step step;
  step.group = group;
  const int kind = random.from_to(0, 9);
  step.kind = kind == 0 ? Kind::ring : kind == 1 ? Kind::message : Kind::collective;
  step.collective = kCollectives[random.below(kCollectives.size())];
  step.count = random.one_in(8) ? 0 : 1 + random.skewed_below(3000);
  step.root = random.from_to(0, 7);
  step.is_started = random.one_in(3);
  step.op = std::array{ReduceOp::sum, ReduceOp::min, ReduceOp::max}[random.below(3)];
  step.pause_us = random.one_in(4) ? random.from_to(1, 3000) : 0;
  return step;
}

}  // namespace

Program choose_program(Random& random, Random& more, int ranks) {
  Program program;
  const int calls = random.from_to(20, 32);
  const int making = random.from_to(1, 2);
  std::vector<int> made_at;
  for (int i = 0; i < making; ++i) made_at.push_back(random.from_to(0, calls / 2));
  for (int i = 0; i < calls; ++i) {
    for (const int at : made_at) {
      if (at != i) continue;
      Step step;
      step.kind = program.groups == 1 || random.one_in(2) ? Kind::split : Kind::dup;
      for (int rank = 0; rank < ranks; ++rank) step.colors.push_back(random.from_to(0, 1));
      program.steps.push_back(step);
      ++program.groups;
    }
    program.steps.push_back(choose_call(random, random.from_to(0, program.groups - 1)));
    if (random.one_in(4)) program.steps.push_back({.kind = Kind::await});
  }
  // All end what they have in other groups; from then on, an error is one of the world.
  program.steps.push_back({.kind = Kind::await});
  program.steps.push_back({.kind = Kind::collective, .collective = Collective::barrier});
  program.world_only = static_cast<int>(program.steps.size());
  for (int i = random.from_to(2, 6); i > 0; --i) program.steps.push_back(choose_call(random, 0));
  program.steps.push_back({.kind = Kind::await});
  for (Step& step : program.steps) {
    step.is_tested = step.is_started && more.one_in(3);
    step.continues = step.is_started && more.one_in(8);
  }
  return program;
}

std::string describe(const Step& step) {
  switch (step.kind) {
    case Kind::split:
      return "split";
    case Kind::dup:
      return "dup";
    case Kind::await:
      return "wait for what was started";
    case Kind::ring:
      return fmt::format("ring of {} in group {}", step.count, step.group);
    case Kind::message:
      return fmt::format("message of {} in group {}", step.count, step.group);
    case Kind::subgroup:
      return "subgroup";
    case Kind::any:
      return fmt::format("{} from any in group {}", step.count, step.group);
    case Kind::own:
      return fmt::format("{} to oneself in group {}", step.count, step.group);
    case Kind::batch:
      return fmt::format("batch of {} in group {}", step.count, step.group);
    case Kind::object:
      return fmt::format("object by {} in group {}", to_string(step.collective), step.group);
    case Kind::scope:
      return fmt::format("scope with {} in group {}", to_string(step.collective), step.group);
    case Kind::again:
      return fmt::format("{} of {} again and again in group {}", to_string(step.collective), step.count, step.group);
    case Kind::beside:
      return fmt::format("two threads in group {}", step.group);
    case Kind::collective:
      break;
  }
  return fmt::format("{}{} of {} in group {}", step.is_started ? "i" : "", to_string(step.collective), step.count,
                     step.group);
}

CallData::CallData(const Step& step, int number, const Group& group)
    : step_(step), number_(number), rank_(group.rank()), size_(group.size()), root_(step.root % group.size()) {
  if (step.kind == Kind::collective) {
    expect_collective();
    return;
  }
  const std::size_t count = step.count;
  const int before = (rank_ + size_ - 1) % size_, taker = (root_ + 1) % size_;
  const auto fill = [&](auto& side, int rank) {
    for (std::size_t i = 0; i < count; ++i) side.push_back(value(rank, i));
  };
  if (step.kind == Kind::ring || rank_ == root_) fill(in_, rank_);
  if (step.kind == Kind::ring)
    fill(expected_, before);
  else if (rank_ == taker)
    fill(expected_, root_);
  out_.assign(expected_.size(), -1);
}

std::int64_t CallData::value(int rank, std::size_t i) const {
  return 1'000'000 * (number_ + 1) + 10'000 * ((rank * 7 + number_) % 11) + static_cast<std::int64_t>(i * 3 % 1009);
}

// How much goes from one rank to the other, if each block has a size of its own.
std::size_t CallData::count_of(int from, int to) const {
  return step_.count * static_cast<std::size_t>((3 * from + 5 * to + number_) % 4) / 2;
}

void CallData::expect_collective() {
  const CollectiveRow& row = row_of(step_.collective);
  tools::ReferenceCall call{
      .collective = step_.collective, .size = size_, .root = root_, .count = step_.count, .ops = {step_.op}};
  const bool is_of_pairs = row.counts == BlockCounts::pairs, gathers = row.out == Extent::blocks;
  for (int from = 0; row.has_counts() && from < (is_of_pairs ? size_ : 1); ++from) {
    for (int to = 0; to < size_; ++to)
      call.counts.push_back(is_of_pairs ? count_of(from, to) : gathers ? count_of(to, 0) : count_of(root_, to));
  }
  auto sides = sides_of(call, rank_, std::int64_t{-1}, [this](int rank, std::size_t i) { return value(rank, i); });
  const bool is_root = rank_ == root_;
  if (row.has_input(is_root)) in_ = std::move(sides.in);
  if (row.has_output(is_root)) out_ = std::move(sides.before), expected_ = std::move(sides.want);
  in_counts_ = std::move(sides.lengths.in_counts);
  out_counts_ = std::move(sides.lengths.out_counts);
  checks_ = step_.collective != Collective::exscan || rank_ > 0;
}

Options CallData::options() const {
  Options options{.op = step_.op, .root = root_};
  if (step_.is_native) options.algorithm = kOwnAlgorithm;
  return options;
}

Call CallData::call() {
  return {.collective = step_.collective, .in = in_, .out = out_, .in_counts = in_counts_, .out_counts = out_counts_};
}

void CallData::run(Group& group) {
  const int next = (rank_ + 1) % size_, before = (rank_ + size_ - 1) % size_, taker = (root_ + 1) % size_;
  if (step_.kind == Kind::collective) return group.run(call(), options());
  if (size_ == 1) {  // a message to oneself
    out_ = in_;
    return;
  }
  if (step_.kind == Kind::ring) return group.sendrecv(in_, next, out_, before);
  if (rank_ == root_) return group.send(in_, taker);
  if (rank_ == taker) group.recv(out_, root_);
}

Work CallData::start(Group& group) {
  const int next = (rank_ + 1) % size_, before = (rank_ + size_ - 1) % size_, taker = (root_ + 1) % size_;
  if (step_.kind == Kind::collective) return group.start(call(), options());
  if (size_ == 1) {
    out_ = in_;
    return {};
  }
  if (step_.kind == Kind::ring) {
    const std::array messages = {Message::send(in_, next), Message::recv(out_, before)};
    return group.ibatch(messages);
  }
  if (rank_ == root_) return group.isend(in_, taker);
  return rank_ == taker ? group.irecv(out_, root_) : Work();
}

std::string CallData::problem() const {
  if (!checks_ || out_ == expected_) return "";
  const auto [got, want] = std::mismatch(out_.begin(), out_.end(), expected_.begin());
  return fmt::format("element {} is {} instead of {}", std::distance(out_.begin(), got), *got, *want);
}

}  // namespace col::test
