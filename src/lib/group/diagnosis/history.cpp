#include "group/diagnosis/history.hpp"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <new>
#include <utility>

#include <fmt/format.h>

namespace col::group {
namespace {

// Runs of equal calls that are kept: more than a rank usually has in flight.
constexpr std::size_t kKeptRuns = 64;

// The same in words, without what its owner may want back.
Op named(const Op& op) {
  if (op.kind() != Op::Kind::user) return op;
  return Op::user([](const void*, const void*, void*, std::size_t, DType) {}, op.commutative(), std::string(op.name()));
}

const Calls::Run* run_of(const Calls& calls, std::uint64_t sequence) {
  const auto run = std::find_if(calls.runs.begin(), calls.runs.end(), [&](const Calls::Run& r) {
    return sequence >= r.first && sequence < r.first + r.times;
  });
  return run == calls.runs.end() ? nullptr : &*run;
}

}  // namespace

std::optional<std::string> Calls::at(std::uint64_t sequence) const {
  if (const Run* const run = run_of(*this, sequence)) return run->text;
  if (has_left && sequence >= end()) return std::string(kHasLeft);
  return std::nullopt;
}

// A line for the whole, one with three numbers for each peer and tag, then for each run a line with numbers and the
// text, whose length is one of them.
std::string Calls::encode() const {
  std::string text = fmt::format("{}{} {}\n", has_left ? "left" : "here", held_up_by, why);
  for (const auto& [to, count] : sent)
    fmt::format_to(std::back_inserter(text), "{} {} {} ", to.first, to.second, count);
  text += '\n';
  for (const Run& run : runs)
    fmt::format_to(std::back_inserter(text), "{} {} {}\n{}", run.first, run.times, run.text.size(), run.text);
  return text;
}

Calls Calls::decode(std::string_view text) {
  const auto take = [&text](std::size_t size) {
    const std::string_view taken = text.substr(0, size);
    text.remove_prefix(taken.size());
    return taken;
  };
  const auto read = [&]<class Number>(Number& number, char end) {
    const std::string_view digits = take(std::min(text.find(end), text.size()));
    std::from_chars(digits.data(), digits.data() + digits.size(), number);
    take(1);
  };
  Calls calls;
  calls.has_left = take(4) == "left";
  read(calls.held_up_by, ' ');
  calls.why = take(std::min(text.find('\n'), text.size()));
  take(1);
  while (!text.empty() && text.front() != '\n') {
    int peer = 0, tag = 0;
    read(peer, ' ');
    read(tag, ' ');
    read(calls.sent[{peer, tag}], ' ');
  }
  take(1);
  while (!text.empty()) {
    Run run;
    std::size_t size = 0;
    read(run.first, ' ');
    read(run.times, ' ');
    read(size, '\n');
    run.text = take(size);
    calls.runs.push_back(std::move(run));
  }
  return calls;
}

void History::add_run(const CollectiveCall& call, std::uint64_t sequence) noexcept {
  try {
    repeats_ = 0;
    if (runs_.size() < kKeptRuns)
      runs_.emplace_back();
    else
      oldest_ = (oldest_ + 1) % runs_.size();
    Run& newest = runs_[(oldest_ + runs_.size() - 1) % runs_.size()];
    static_cast<CollectiveCall&>(newest) = call;
    newest.first = sequence;
    newest.request.op = named(call.request.op);
    newest.request.in_counts = newest.in_counts;
    newest.request.out_counts = newest.out_counts;
    if (!row_of(call.request.collective).has_private_counts()) repeats_ = call.call;
  } catch (const std::bad_alloc&) {  // then there is nothing to compare, for a while
    runs_.clear();
    oldest_ = 0;
  }
}

Calls History::calls(int rank, int size) const {
  Calls calls;
  for (std::size_t i = 0; i < runs_.size(); ++i) {
    const Run& of = run(i);
    calls.runs.push_back({of.first, end_of(i) - of.first, operation_of(of, of.first, rank, size).encode()});
  }
  return calls;
}

Operation History::operation(std::uint64_t sequence, int rank, int size) const {
  std::size_t index = 0;
  while (sequence >= end_of(index)) ++index;
  return operation_of(run(index), sequence, rank, size);
}

std::optional<std::uint64_t> first_difference(const History& history, const Calls& own, int own_rank,
                                              const Calls& other, int rank, int size) {
  if (own.runs.empty()) return std::nullopt;
  std::uint64_t sequence = own.runs.front().first;
  if (!other.runs.empty()) sequence = std::max(sequence, other.runs.front().first);
  while (sequence < own.end()) {
    const Calls::Run& mine = *run_of(own, sequence);
    const Calls::Run* const theirs = run_of(other, sequence);
    if (theirs == nullptr) return other.has_left ? std::optional(sequence) : std::nullopt;
    // Equal texts need not match where counts differ from rank to rank by right.
    if ((mine.text != theirs->text || mine.text.find('\n') != std::string::npos) &&
        !matches(history.operation(sequence, own_rank, size), own_rank, theirs->text, rank))
      return sequence;
    sequence = std::min(mine.first + mine.times, theirs->first + theirs->times);
  }
  return std::nullopt;
}

}  // namespace col::group
