#include "simulation/program.hpp"

#include <algorithm>
#include <array>
#include <iterator>

#include <fmt/format.h>

#include <col/collective.hpp>

#include "simulation/fine_channel.hpp"

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

// For the first `ranks` ranks.
std::int64_t CallData::reduced(int ranks, std::size_t i) const {
  std::int64_t result = value(0, i);
  for (int rank = 1; rank < ranks; ++rank) {
    const std::int64_t next = value(rank, i);
    result = step_.op == ReduceOp::sum   ? result + next
             : step_.op == ReduceOp::min ? std::min(result, next)
                                         : std::max(result, next);
  }
  return result;
}

void CallData::expect_collective() {
  const auto ranks = static_cast<std::size_t>(size_);
  const std::size_t count = step_.count, own = static_cast<std::size_t>(rank_);
  const bool is_root = rank_ == root_;
  const auto fill_in = [&](std::size_t elements) {
    for (std::size_t i = 0; i < elements; ++i) in_.push_back(value(rank_, i));
  };
  const auto expect = [&](std::size_t elements, const auto& of) {
    for (std::size_t i = 0; i < elements; ++i) expected_.push_back(of(i));
    out_.assign(elements, -1);
  };
  switch (step_.collective) {
    case Collective::allreduce:
    case Collective::reduce:
      fill_in(count);
      if (step_.collective == Collective::allreduce || is_root)
        expect(count, [&](std::size_t i) { return reduced(size_, i); });
      break;
    case Collective::scan:
    case Collective::exscan:
      fill_in(count);
      checks_ = step_.collective == Collective::scan || rank_ > 0;
      expect(count, [&](std::size_t i) {
        return checks_ ? reduced(rank_ + (step_.collective == Collective::scan ? 1 : 0), i) : -1;
      });
      break;
    case Collective::broadcast:
      expect(count, [&](std::size_t i) { return value(root_, i); });
      if (is_root) out_ = expected_;
      break;
    case Collective::allgather:
    case Collective::gather:
      fill_in(count);
      if (step_.collective == Collective::allgather || is_root)
        expect(count * ranks, [&](std::size_t i) { return value(static_cast<int>(i / count), i % count); });
      break;
    case Collective::reduce_scatter:
      fill_in(count * ranks);
      expect(count, [&](std::size_t i) { return reduced(size_, own * count + i); });
      break;
    case Collective::scatter:
      if (is_root) fill_in(count * ranks);
      expect(count, [&](std::size_t i) { return value(root_, own * count + i); });
      break;
    case Collective::alltoall:
      fill_in(count * ranks);
      expect(count * ranks, [&](std::size_t i) { return value(static_cast<int>(i / count), own * count + i % count); });
      break;
    default:
      expect_blocks();
      break;
  }
}

// How much goes from one rank to the other, if each block has a size of its own.
std::size_t CallData::count_of(int from, int to) const {
  return step_.count * static_cast<std::size_t>((3 * from + 5 * to + number_) % 4) / 2;
}

// In the v-forms: on each rank, the blocks for all ranks follow one another.
void CallData::expect_blocks() {
  const Collective c = step_.collective;
  const bool is_root = rank_ == root_, is_all_to_all = c == Collective::alltoallv;
  const auto fill_in = [&](std::size_t elements) {
    for (std::size_t i = 0; i < elements; ++i) in_.push_back(value(rank_, i));
  };
  // The part that this rank has of what another one has, from that place on.
  const auto expect = [&](int from, std::size_t begin, std::size_t elements) {
    for (std::size_t i = 0; i < elements; ++i) expected_.push_back(value(from, begin + i));
  };
  if (c == Collective::allgatherv || c == Collective::gatherv) {
    fill_in(count_of(rank_, 0));
    for (int rank = 0; rank < size_; ++rank) {
      out_counts_.push_back(count_of(rank, 0));
      if (c == Collective::allgatherv || is_root) expect(rank, 0, out_counts_.back());
    }
  } else if (c == Collective::scatterv || c == Collective::reduce_scatterv || is_all_to_all) {
    std::size_t whole = 0;
    for (int rank = 0; rank < size_; ++rank) {
      const int from = is_all_to_all ? rank_ : root_;
      if (rank == rank_ && c == Collective::scatterv) expect(root_, whole, count_of(from, rank));
      for (std::size_t i = 0; rank == rank_ && c == Collective::reduce_scatterv && i < count_of(from, rank); ++i)
        expected_.push_back(reduced(size_, whole + i));
      in_counts_.push_back(count_of(from, rank));
      whole += in_counts_.back();
    }
    if (c != Collective::scatterv || is_root) fill_in(whole);
    for (int from = 0; is_all_to_all && from < size_; ++from) {
      std::size_t begin = 0;
      for (int rank = 0; rank < rank_; ++rank) begin += count_of(from, rank);
      out_counts_.push_back(count_of(from, rank_));
      expect(from, begin, out_counts_.back());
    }
  }
  out_.assign(expected_.size(), -1);
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
