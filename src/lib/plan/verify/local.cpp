// The local steps of a round, and what every step must obey.
#include <algorithm>

#include <fmt/format.h>

#include "plan/verify/machine.hpp"

namespace col::plan::symbolic {
namespace {

// "copies input[0..3) to output[0..3)"
std::string describe(const Step& step) {
  using symbolic::describe;
  switch (step.kind) {
    case Step::Kind::send:
      return fmt::format("sends {} to rank {}", describe(step.left), step.peer);
    case Step::Kind::recv:
      return fmt::format("receives {} from rank {}", describe(step.to), step.peer);
    case Step::Kind::reduce:
      return fmt::format("reduces {} and {} to {}", describe(step.left), describe(step.right), describe(step.to));
    case Step::Kind::copy:
      return fmt::format("copies {} to {}", describe(step.left), describe(step.to));
    case Step::Kind::convert:
      return fmt::format("converts {} to {}", describe(step.left), describe(step.to));
  }
  return "does what no kind of step does";
}

}  // namespace

void Machine::fail(int rank, std::string what) const {
  const std::size_t round = at(rank).index;
  throw Fault{rank, round, fmt::format("round {}, rank {}: {}", round, rank, what)};
}

void Machine::check_slice(int rank, const Step& step, const Slice& slice) const {
  if (slice.empty()) return;
  if (static_cast<std::size_t>(slice.buffer) > static_cast<std::size_t>(Buffer::wide))
    fail(rank, fmt::format("{} of an unknown buffer", to_string(step.kind)));
  if (at(rank).memory.has(slice)) return;
  fail(rank, fmt::format("{}: {} has {} elements here", describe(step), to_string(slice.buffer),
                         at(rank).memory.count(slice.buffer)));
}

void Machine::check_target(int rank, const Step& step) const {
  if (step.to.empty() || at(rank).memory.is_writable(step.to.buffer)) return;
  fail(rank, fmt::format("{}: {}", describe(step),
                         step.to.buffer == Buffer::input ? "an input is never written"
                                                         : "rank 0 of an exscan leaves its output as it is"));
}

void Machine::check_local(int rank, const Step& step) const {
  const RankMemory& memory = at(rank).memory;
  if (step.kind > Step::Kind::convert) fail(rank, describe(step));
  const bool has_right = step.kind == Step::Kind::reduce;
  if (step.to.count != step.left.count || (has_right && step.to.count != step.right.count))
    fail(rank, fmt::format("{}: the slices differ in length", describe(step)));
  if (step.kind != Step::Kind::copy && !row_of(problem_.spec().collective).reduces())
    fail(rank, fmt::format("{}, but {} reduces nothing", describe(step), to_string(problem_.spec().collective)));
  for (const Slice* slice : {&step.to, &step.left, &step.right}) {
    if (slice != &step.right || has_right) check_slice(rank, step, *slice);
  }
  check_target(rank, step);

  const auto check_overlap = [&](const Slice& operand) {
    const auto to = memory.extent(step.to);
    const auto from = memory.extent(operand);
    if (to.overlaps(from) && to != from)
      fail(rank, fmt::format("{}: {} overlaps {} and is not exactly the same elements", describe(step),
                             symbolic::describe(step.to), symbolic::describe(operand)));
  };
  check_overlap(step.left);
  if (has_right) check_overlap(step.right);

  const bool to_wide = memory.is_wide(step.to.buffer);
  if (has_right && problem_.spec().widens && !to_wide)
    fail(rank,
         fmt::format("{}: the partial result is rounded before it was complete; keep it in wide", describe(step)));
  if (step.kind == Step::Kind::copy && !to_wide && memory.is_wide(step.left.buffer))
    fail(rank, fmt::format("{}: the partial result is rounded before it was complete; a convert does that in the end",
                           describe(step)));
  if (step.kind == Step::Kind::convert && to_wide)
    fail(rank, fmt::format("{}: a converted value is of the user's type, and wide is not", describe(step)));
}

void Machine::read(int rank, const Step& step, const Slice& slice, std::vector<Piece>& pieces) const {
  at(rank).memory.read(slice, pieces);
  std::size_t offset = slice.offset;
  for (const Piece& piece : pieces) {
    if (piece.node == kUnset)
      fail(rank, fmt::format("{}: {} was never written", describe(step),
                             symbolic::describe({slice.buffer, offset, piece.count})));
    offset += piece.count;
  }
}

void Machine::reduce(int rank, const Step& step) {
  read(rank, step, step.left, pieces_);
  read(rank, step, step.right, right_pieces_);
  made_.clear();
  std::size_t l = 0, r = 0;  // pieces at work
  for (std::size_t done = 0; done < step.to.count;) {
    Piece& left = pieces_[l];
    Piece& right = right_pieces_[r];
    const std::size_t n = std::min(left.count, right.count);
    for (const Node operand : {left.node, right.node}) {
      if (symbols_.is_finished(operand))
        fail(rank, fmt::format("{}: {} in it is converted already", describe(step), symbols_.describe(operand)));
    }
    if (left.index != right.index)
      fail(rank, fmt::format("{}: combines element {} of {} with element {} of {}", describe(step), left.index,
                             symbols_.describe(left.node), right.index, symbols_.describe(right.node)));
    made_.push_back({n, symbols_.reduce(left.node, right.node), left.index});
    done += n;
    for (Piece* piece : {&left, &right}) {
      piece->count -= n;
      piece->index += n;
    }
    if (left.count == 0) ++l;
    if (right.count == 0) ++r;
  }
  at(rank).memory.write(step.to, made_);
}

void Machine::convert(int rank, const Step& step) {
  read(rank, step, step.left, pieces_);
  for (Piece& piece : pieces_) {
    if (symbols_.is_finished(piece.node))
      fail(rank, fmt::format("{}: {} in it is converted already", describe(step), symbols_.describe(piece.node)));
    piece.node = symbols_.finish(piece.node);
  }
  at(rank).memory.write(step.to, pieces_);
}

}  // namespace col::plan::symbolic
