#include "plan/verify/memory.hpp"

#include <algorithm>
#include <cassert>
#include <numeric>

#include <fmt/format.h>

#include "plan/blocks.hpp"

namespace col::plan::symbolic {

std::size_t Contents::run_at(std::size_t offset) const noexcept {
  const auto after = std::upper_bound(runs_.begin(), runs_.end(), offset,
                                      [](std::size_t at, const Run& run) { return at < run.begin; });
  return static_cast<std::size_t>(after - runs_.begin()) - 1;
}

void Contents::read(std::size_t offset, std::size_t count, std::vector<Piece>& pieces) const {
  assert(offset + count <= count_);
  const std::size_t end = offset + count;
  for (std::size_t run = run_at(offset); offset < end; ++run) {
    const std::size_t stop = std::min(end, end_of(run));
    pieces.push_back({stop - offset, runs_[run].node, runs_[run].index + (offset - runs_[run].begin)});
    offset = stop;
  }
}

void Contents::write(std::size_t offset, const Piece& piece) {
  if (piece.count == 0) return;
  assert(offset + piece.count <= count_);
  const std::size_t end = offset + piece.count;
  std::size_t first = run_at(offset);
  std::size_t last = run_at(end - 1);  // runs [first, last] give way to at most three
  std::array<Run, 3> fresh;
  std::size_t n = 0;
  if (runs_[first].begin < offset)
    fresh[n++] = runs_[first];
  else if (first > 0)
    fresh[n++] = runs_[--first];
  const Run written{offset, piece.node, piece.index};
  if (n == 0 || !fresh[n - 1].continued_by(written)) fresh[n++] = written;
  Run rest{end, runs_[last].node, runs_[last].index + (end - runs_[last].begin)};
  bool has_rest = end < end_of(last);
  if (!has_rest && last + 1 < runs_.size()) {
    rest = runs_[++last];
    has_rest = true;
  }
  if (has_rest && !fresh[n - 1].continued_by(rest)) fresh[n++] = rest;

  const auto at = runs_.begin() + static_cast<std::ptrdiff_t>(first);
  const std::size_t replaced = last - first + 1;
  const std::size_t kept = std::min(n, replaced);
  std::copy_n(fresh.begin(), kept, at);
  const auto behind = at + static_cast<std::ptrdiff_t>(kept);
  if (replaced > n)
    runs_.erase(behind, at + static_cast<std::ptrdiff_t>(replaced));
  else
    runs_.insert(behind, fresh.begin() + static_cast<std::ptrdiff_t>(kept),
                 fresh.begin() + static_cast<std::ptrdiff_t>(n));
}

std::string describe(const Slice& slice) {
  return fmt::format("{}[{}..{})", to_string(slice.buffer), slice.offset, slice.offset + slice.count);
}

RankMemory::RankMemory(const PlanProblem& problem, int rank, const Plan& plan, const Symbols& symbols) {
  const PlanRequest request = problem.request(rank);
  const CollectiveRow& row = row_of(request.collective);
  counts_ = {problem.input_count(rank), problem.output_count(rank), plan.scratch, plan.wide};
  is_wide_ = {request.widens && request.wide_input, false, false, request.widens};
  const bool leaves_output = row.folds == Folds::below_rank && rank == 0;
  is_writable_ = {false, !leaves_output, true, true};
  for (std::size_t buffer = 0; buffer < counts_.size(); ++buffer) {
    mappings_[buffer] = {static_cast<Buffer>(buffer), 0};
    contents_[buffer] = Contents(counts_[buffer]);
  }
  if (request.in_place) share(request);

  const Slice input{Buffer::input, 0, count(Buffer::input)};
  if (request.contributions.empty()) {
    if (!input.empty()) write(input, {{input.count, symbols.leaf(rank), 0}});
  } else {
    const auto own = request.contributions.begin() + rank;
    const auto first = static_cast<int>(std::reduce(request.contributions.begin(), own));
    const std::size_t length = *own == 0 ? 0 : input.count / *own;
    for (std::size_t i = 0; i < *own; ++i) {
      const Slice one = input.part(i * length, length);
      if (!one.empty()) write(one, {{one.count, symbols.leaf(first + static_cast<int>(i)), 0}});
    }
  }
  const Slice output{Buffer::output, 0, count(Buffer::output)};
  if (!row.has_input(true) && rank == request.root && !output.empty())
    write(output, {{output.count, symbols.leaf(rank), 0}});
}

// The shorter of the two is this rank's block of the longer one.
void RankMemory::share(const PlanRequest& request) {
  const auto own = static_cast<std::size_t>(request.rank);
  const bool is_root = request.rank == request.root;
  Mapping& input = mappings_[static_cast<std::size_t>(Buffer::input)];
  Mapping& output = mappings_[static_cast<std::size_t>(Buffer::output)];
  const CollectiveRow& row = row_of(request.collective);
  if (!row.has_in_place() || !row.has_input(is_root) || !row.has_output(is_root)) return;
  if (row.in == col::Extent::block)
    input = {Buffer::output, Blocks::of_output(request).offset(own)};
  else if (row.out == col::Extent::block)
    output = {Buffer::input, Blocks::of_input(request).offset(own)};
  else
    input = {Buffer::output, 0};
}

RankMemory::Extent RankMemory::extent(const Slice& slice) const noexcept {
  const Mapping& place = mappings_[static_cast<std::size_t>(slice.buffer)];
  const std::size_t begin = place.base + slice.offset;
  return {place.memory, begin, begin + slice.count};
}

void RankMemory::read(const Slice& slice, std::vector<Piece>& pieces) const {
  pieces.clear();
  const Extent at = extent(slice);
  contents(at.memory).read(at.begin, slice.count, pieces);
}

void RankMemory::write(const Slice& slice, const std::vector<Piece>& pieces) {
  const Extent at = extent(slice);
  std::size_t offset = at.begin;
  for (const Piece& piece : pieces) {
    contents(at.memory).write(offset, piece);
    offset += piece.count;
  }
}

}  // namespace col::plan::symbolic
