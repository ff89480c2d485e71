#include "group/flight/pending.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "core/hash.hpp"
#include "group/call/checks.hpp"
#include "group/call/composite.hpp"

namespace col::group {
namespace {

// The same words on both sides, so that equal calls are equal texts.
Operation describe_leg(const Leg& leg, int rank, int size) {
  const std::string what = fmt::format("{} {}", leg.view.count, to_string(leg.view.dtype));
  if (leg.peer == kAnyPeer) {
    // Nobody posts a counterpart: all are asked whether they are still there, and none is compared.
    return {.text = fmt::format("message of {} from any rank to rank {}, tag {}", what, rank, leg.tag),
            .board = fmt::format("a/{}/{}", rank, leg.tag),
            .sequence = leg.number,
            .collective = false,
            .counterparts = all_but(rank, size)};
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

}  // namespace

bool Pending::uses(ConstTensorView memory) const {
  if (collective) return overlaps(memory, request.in) || overlaps(memory, request.out);
  return std::ranges::any_of(legs, [&](const Leg& leg) { return overlaps(memory, leg.view); });
}

void Pending::reset() {
  name = "";
  spent = {};
  began = 0;
  words.clear();
  legs.clear();
  parts.clear();
  is_collected = false;
  in_counts.clear();
  out_counts.clear();
  decision.reset();
  run.plan_of_counts.reset();
  native.reset();
  is_brief = false;
  ticket.reset();
  channel = nullptr;
  stream = {};
  ends_on_device = false;
  in_graph.reset();
  phase = Phase::running;
  staging.reset();
  watch.reset();
  recorded.reset();
  entry.reset();
  began_ns = 0;
  copy_failure = nullptr;
  request = {};
  form = {};
  is_long = false;
  started = false;
  error.reset();
  source = -1;
  begin_again();
}

std::vector<Operation> Pending::describe(int rank, int size) const {
  if (collective) return {operation_of(*this, sequence, rank, size)};
  if (!parts.empty()) {
    const auto first = std::ranges::find_if(parts, [](const auto& part) { return !part->has_ended(); });
    return (first != parts.end() ? *first : parts.front())->describe(rank, size);
  }
  std::vector<Operation> operations;
  const auto add = [&](const Leg& leg) {
    operations.push_back(describe_leg(leg, rank, size));
    operations.back().called = name;
    if (!leg.sending) operations.back().received_tag = leg.tag;
  };
  for (const Leg& leg : legs) {
    if (!leg.done) add(leg);
  }
  if (operations.empty()) std::ranges::for_each(legs, add);
  return operations;
}

namespace {

const Leg& leg_of(const std::vector<Leg>& legs) {
  for (const Leg& leg : legs) {
    if (!leg.done) return leg;
  }
  return legs.front();
}

}  // namespace

Collective Pending::kind() const {
  if (collective || legs.empty()) return request.collective;
  return leg_of(legs).sending ? Collective::send : Collective::recv;
}

CallDetails Pending::details(const std::vector<PeerInfo>& peers) const {
  const auto global = [&](int rank) {
    return rank >= 0 && rank < static_cast<int>(peers.size()) ? peers[static_cast<std::size_t>(rank)].global_rank : -1;
  };
  if (!collective && !legs.empty()) {
    const Leg& leg = leg_of(legs);
    // One from any rank that has come is from that rank.
    const int peer = leg.peer == kAnyPeer && (leg.done || has_ended()) ? source : leg.peer;
    return {.dtype = leg.view.dtype, .count = leg.view.count, .partner = global(peer), .tag = leg.tag};
  }
  const ConstTensorView view = common_view(request);
  return {.dtype = view.dtype,
          .count = view.count,
          .partner = row_of(request.collective).rooted ? global(request.root) : -1,
          .reduction = reduction()};
}

std::uint8_t Prepared::reduction() const {
  if (!row_of(request.collective).reduces()) return 0;
  if (request.op.kind() != Op::Kind::builtin) return RankRecord::kOtherReduction;
  return static_cast<std::uint8_t>(1 + static_cast<int>(request.op.reduce_op()));
}

Diagnosis Pending::diagnose(Surroundings& surroundings) const {
  return {surroundings, [&surroundings, this] { return describe(surroundings.rank, surroundings.size()); }};
}

Watch& Pending::watch_in(Surroundings& surroundings) {
  if (!watch)
    watch = std::make_unique<Watch>(surroundings,
                                    [&surroundings, this] { return describe(surroundings.rank, surroundings.size()); });
  return *watch;
}

Operation describe_message(const Leg& leg, int rank, int size) {
  return describe_leg(leg, rank, size);
}

std::uint64_t message_slot(std::uint64_t group_token, const Leg& leg) {
  const std::uint64_t stream = core::Hash().add(group_token).add("message").add(leg.tag).value();
  const std::uint64_t content = core::Hash().add(leg.view.count).add(static_cast<int>(leg.view.dtype)).value();
  return (stream & ~kSlotContent) | (content & kSlotContent);
}

}  // namespace col::group
