#include "group/call/pending.hpp"

#include <fmt/format.h>

#include "core/hash.hpp"
#include "group/call/composite.hpp"

namespace col::group {
namespace {

std::vector<int> everybody_but(int rank, int size) {
  std::vector<int> ranks;
  for (int r = 0; r < size; ++r) {
    if (r != rank) ranks.push_back(r);
  }
  return ranks;
}

// The same words on both sides, so that equal calls are equal texts.
Operation describe_leg(const Leg& leg, int rank, int size) {
  const std::string what = fmt::format("{} {}", leg.view.count, to_string(leg.view.dtype));
  if (leg.peer == kAnyPeer) {
    // Nobody posts a counterpart: all are asked whether they are still there, and none is compared.
    return {.text = fmt::format("message of {} from any rank to rank {}, tag {}", what, rank, leg.tag),
            .board = fmt::format("a/{}/{}", rank, leg.tag),
            .sequence = leg.number,
            .collective = false,
            .counterparts = everybody_but(rank, size)};
  }
  const int source = leg.sending ? rank : leg.peer;
  const int destination = leg.sending ? leg.peer : rank;
  if (leg.peer == rank || !leg.numbered) {
    // Nothing to compare: nobody else takes part, or knows which message of the two ranks this is.
    std::vector<int> counterparts;
    if (leg.peer != rank) counterparts.push_back(leg.peer);
    return {.text = fmt::format("message of {} from rank {} to rank {}, tag {}", what, source, destination, leg.tag),
            .board = fmt::format("a/{}/{}", rank, leg.tag),
            .sequence = leg.number,
            .collective = false,
            .counterparts = std::move(counterparts)};
  }
  return {.text = fmt::format("message of {} from rank {} to rank {}, tag {}", what, source, destination, leg.tag),
          .board = fmt::format("p/{}/{}/{}/{}", source, destination, leg.tag, leg.number),
          .sequence = leg.number,
          .collective = false,
          .counterparts = {leg.peer}};
}

bool is_same(const ConstTensorView& a, const ConstTensorView& b) {
  return a.data == b.data && a.count == b.count && a.dtype == b.dtype && a.device == b.device;
}

}  // namespace

Operation describe_collective(const Request& request, const CallForm& form, const std::string& words,
                              std::uint64_t sequence, int rank, int size) {
  Operation operation{.text = words.empty() ? describe(request, form) : words,
                      .sequence = sequence,
                      .counterparts = everybody_but(rank, size)};
  const CollectiveRow& row = row_of(request.collective);
  if (!row.has_private_counts()) return operation;
  const auto n = static_cast<std::size_t>(size);
  operation.in_counts.assign(n, 0);
  operation.out_counts.assign(n, 0);
  const bool is_root = rank == request.root;
  const auto root = static_cast<std::size_t>(request.root);
  if (row.counts == BlockCounts::pairs || is_root) {
    if (!request.in_counts.empty()) operation.in_counts.assign(request.in_counts.begin(), request.in_counts.end());
    if (!request.out_counts.empty()) operation.out_counts.assign(request.out_counts.begin(), request.out_counts.end());
  } else if (row.in == Extent::block) {
    operation.in_counts[root] = request.in.count;
  } else {
    operation.out_counts[root] = request.out.count;
  }
  return operation;
}

bool Pending::is_repeated_by(const Request& other, const CallWishes& wishes) const {
  return other.collective == request.collective && is_same(other.in, request.in) && is_same(other.out, request.out) &&
         other.root == request.root && other.op.kind() == Op::Kind::builtin && request.op.kind() == Op::Kind::builtin &&
         other.op.reduce_op() == request.op.reduce_op() && other.in_counts.empty() && other.out_counts.empty() &&
         in_counts.empty() && out_counts.empty() && other.stream.handle == request.stream.handle &&
         form.part_of == Composite::current() && wishes.asynchronous == form.asynchronous &&
         wishes.compress == form.compress && wishes.deterministic == deterministic &&
         wishes.algorithm == asked_algorithm;
}

void Pending::reset() {
  name = "";
  words.clear();
  legs.clear();
  in_counts.clear();
  out_counts.clear();
  decision.reset();
  ticket.reset();
  channel = nullptr;
  stream = {};
  phase = Phase::running;
  staging.reset();
  watch.reset();
  copy_failure = nullptr;
  request = {};
  form = {};
  error.reset();
  source = -1;
  ended = false;
}

std::vector<Operation> Pending::describe(int rank, int size) const {
  if (collective) return {describe_collective(request, form, words, sequence, rank, size)};
  std::vector<Operation> operations;
  const auto add = [&](const Leg& leg) {
    operations.push_back(describe_leg(leg, rank, size));
    operations.back().called = name;
    if (!leg.sending) operations.back().received_tag = leg.tag;
  };
  for (const Leg& leg : legs) {
    if (!leg.done) add(leg);
  }
  if (operations.empty() && !legs.empty()) add(legs.front());
  return operations;
}

std::uint64_t message_slot(std::uint64_t group_token, const Leg& leg) {
  const std::uint64_t stream = core::Hash().add(group_token).add("message").add(leg.tag).value();
  const std::uint64_t content = core::Hash().add(leg.view.count).add(static_cast<int>(leg.view.dtype)).value();
  return (stream & ~kSlotContent) | (content & kSlotContent);
}

}  // namespace col::group
