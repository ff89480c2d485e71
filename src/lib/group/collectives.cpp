// The methods of Group: each says which buffers take part, the rest is shared (state.cpp, messages.cpp).
#include <col/group.hpp>

#include "group/checks.hpp"
#include "group/state.hpp"

namespace col {
namespace {

using Counts = std::span<const std::size_t>;

Request make(Collective collective, ConstTensorView in, TensorView out, const Options& options, Counts in_counts = {},
             Counts out_counts = {}) {
  Request request;
  request.collective = collective;
  request.in = in;
  request.out = out;
  request.in_counts = in_counts;
  request.out_counts = out_counts;
  request.op = options.op;
  request.root = options.root;
  request.stream = options.stream;
  return request;
}

group::Leg leg_of(const Message& message) {
  group::Leg leg{.sending = message.direction == Message::Direction::send, .peer = message.peer, .tag = message.tag};
  leg.view = leg.sending ? message.sent : ConstTensorView(message.received);
  leg.destination = leg.sending ? nullptr : message.received.data;
  return leg;
}

std::vector<group::Leg> legs_of(std::span<const Message> messages) {
  std::vector<group::Leg> legs;
  for (const Message& message : messages) legs.push_back(leg_of(message));
  return legs;
}

group::Leg leg_from_any(TensorView data, int tag) {
  group::Leg leg = leg_of(Message::recv(data, 0, tag));
  leg.peer = kAnyPeer;
  leg.from_any = true;
  return leg;
}

}  // namespace

Message Message::send(ConstTensorView data, int destination, int tag) {
  return {.direction = Direction::send, .sent = data, .peer = destination, .tag = tag};
}

Message Message::recv(TensorView data, int source, int tag) {
  return {.direction = Direction::recv, .received = data, .peer = source, .tag = tag};
}

Group::Group(std::shared_ptr<State> state) : state_(std::move(state)) {}

Group::State& Group::state() const {
  if (!state_)
    throw Error(ErrorCode::not_initialized,
                "this is no group: it was made by Group() or by a split() or subgroup() that this rank is not part of");
  return *state_;
}

int Group::rank() const {
  return state().rank();
}
int Group::size() const {
  return state().size();
}
std::string_view Group::name() const {
  return state().name();
}
std::string_view Group::backend() const {
  return state().backend();
}
Device Group::device() const {
  return state().device();
}
std::vector<int> Group::ranks() const {
  std::vector<int> ranks;
  for (int r = 0; r < size(); ++r) ranks.push_back(state().world_rank(r));
  return ranks;
}
int Group::world_rank(int rank) const {
  group::check_peer(rank, "world_rank: rank", state().shape());
  return state().world_rank(rank);
}
int Group::rank_of(int world_rank) const {
  return state().rank_of(world_rank);
}
Duration Group::timeout() const {
  return state().timeout();
}

void Group::destroy() {
  state().leave();
}

void Group::allreduce(ConstTensorView in, TensorView out, const Options& options) {
  state().run(make(Collective::allreduce, in, out, options), options);
}
Work Group::iallreduce(ConstTensorView in, TensorView out, const Options& options) {
  return state().start(make(Collective::allreduce, in, out, options), options);
}

void Group::reduce(ConstTensorView in, TensorView out, const Options& options) {
  state().run(make(Collective::reduce, in, out, options), options);
}
Work Group::ireduce(ConstTensorView in, TensorView out, const Options& options) {
  return state().start(make(Collective::reduce, in, out, options), options);
}

void Group::scan(ConstTensorView in, TensorView out, const Options& options) {
  state().run(make(Collective::scan, in, out, options), options);
}
Work Group::iscan(ConstTensorView in, TensorView out, const Options& options) {
  return state().start(make(Collective::scan, in, out, options), options);
}

void Group::exscan(ConstTensorView in, TensorView out, const Options& options) {
  state().run(make(Collective::exscan, in, out, options), options);
}
Work Group::iexscan(ConstTensorView in, TensorView out, const Options& options) {
  return state().start(make(Collective::exscan, in, out, options), options);
}

void Group::reduce_scatter(ConstTensorView in, TensorView out, const Options& options) {
  state().run(make(Collective::reduce_scatter, in, out, options), options);
}
Work Group::ireduce_scatter(ConstTensorView in, TensorView out, const Options& options) {
  return state().start(make(Collective::reduce_scatter, in, out, options), options);
}

void Group::allgather(ConstTensorView in, TensorView out, const Options& options) {
  state().run(make(Collective::allgather, in, out, options), options);
}
Work Group::iallgather(ConstTensorView in, TensorView out, const Options& options) {
  return state().start(make(Collective::allgather, in, out, options), options);
}

void Group::gather(ConstTensorView in, TensorView out, const Options& options) {
  state().run(make(Collective::gather, in, out, options), options);
}
Work Group::igather(ConstTensorView in, TensorView out, const Options& options) {
  return state().start(make(Collective::gather, in, out, options), options);
}

void Group::scatter(ConstTensorView in, TensorView out, const Options& options) {
  state().run(make(Collective::scatter, in, out, options), options);
}
Work Group::iscatter(ConstTensorView in, TensorView out, const Options& options) {
  return state().start(make(Collective::scatter, in, out, options), options);
}

void Group::alltoall(ConstTensorView in, TensorView out, const Options& options) {
  state().run(make(Collective::alltoall, in, out, options), options);
}
Work Group::ialltoall(ConstTensorView in, TensorView out, const Options& options) {
  return state().start(make(Collective::alltoall, in, out, options), options);
}

void Group::broadcast(TensorView inout, const Options& options) {
  state().run(make(Collective::broadcast, {}, inout, options), options);
}
Work Group::ibroadcast(TensorView inout, const Options& options) {
  return state().start(make(Collective::broadcast, {}, inout, options), options);
}

void Group::reduce_scatterv(ConstTensorView in, TensorView out, Counts counts, const Options& options) {
  state().run(make(Collective::reduce_scatterv, in, out, options, counts), options);
}
Work Group::ireduce_scatterv(ConstTensorView in, TensorView out, Counts counts, const Options& options) {
  return state().start(make(Collective::reduce_scatterv, in, out, options, counts), options);
}

void Group::allgatherv(ConstTensorView in, TensorView out, Counts counts, const Options& options) {
  state().run(make(Collective::allgatherv, in, out, options, {}, counts), options);
}
Work Group::iallgatherv(ConstTensorView in, TensorView out, Counts counts, const Options& options) {
  return state().start(make(Collective::allgatherv, in, out, options, {}, counts), options);
}

void Group::gatherv(ConstTensorView in, TensorView out, Counts counts, const Options& options) {
  state().run(make(Collective::gatherv, in, out, options, {}, counts), options);
}
Work Group::igatherv(ConstTensorView in, TensorView out, Counts counts, const Options& options) {
  return state().start(make(Collective::gatherv, in, out, options, {}, counts), options);
}

void Group::scatterv(ConstTensorView in, Counts counts, TensorView out, const Options& options) {
  state().run(make(Collective::scatterv, in, out, options, counts), options);
}
Work Group::iscatterv(ConstTensorView in, Counts counts, TensorView out, const Options& options) {
  return state().start(make(Collective::scatterv, in, out, options, counts), options);
}

void Group::alltoallv(ConstTensorView in, Counts in_counts, TensorView out, Counts out_counts, const Options& options) {
  state().run(make(Collective::alltoallv, in, out, options, in_counts, out_counts), options);
}
Work Group::ialltoallv(ConstTensorView in, Counts in_counts, TensorView out, Counts out_counts,
                       const Options& options) {
  return state().start(make(Collective::alltoallv, in, out, options, in_counts, out_counts), options);
}

void Group::barrier(const Options& options) {
  state().run(make(Collective::barrier, {}, {}, options), options);
}
Work Group::ibarrier(const Options& options) {
  return state().start(make(Collective::barrier, {}, {}, options), options);
}

void Group::allreduce(TensorView inout, const Options& options) {
  allreduce(inout, inout, options);
}
void Group::reduce(TensorView inout, const Options& options) {
  reduce(inout, inout, options);
}

// ---- Point to point

void Group::send(ConstTensorView data, int destination, const Options& options) {
  state().exchange("send", {leg_of(Message::send(data, destination, options.tag))}, options);
}
Work Group::isend(ConstTensorView data, int destination, const Options& options) {
  return state().start_messages("isend", {leg_of(Message::send(data, destination, options.tag))}, options);
}
void Group::recv(TensorView data, int source, const Options& options) {
  state().exchange("recv", {leg_of(Message::recv(data, source, options.tag))}, options);
}
Work Group::irecv(TensorView data, int source, const Options& options) {
  return state().start_messages("irecv", {leg_of(Message::recv(data, source, options.tag))}, options);
}
int Group::recv_any(TensorView data, const Options& options) {
  return state().exchange("recv_any", {leg_from_any(data, options.tag)}, options);
}
Work Group::irecv_any(TensorView data, const Options& options) {
  return state().start_messages("irecv_any", {leg_from_any(data, options.tag)}, options);
}
void Group::sendrecv(ConstTensorView send, int destination, TensorView recv, int source, const Options& options) {
  state().exchange(
      "sendrecv",
      {leg_of(Message::send(send, destination, options.tag)), leg_of(Message::recv(recv, source, options.tag))},
      options);
}
void Group::batch(std::span<const Message> messages, const Options& options) {
  state().exchange("batch", legs_of(messages), options);
}
Work Group::ibatch(std::span<const Message> messages, const Options& options) {
  return state().start_messages("ibatch", legs_of(messages), options);
}

// ---- Looking inside

std::string Group::explain(Collective collective, std::size_t bytes, DType dtype, const Options& options) const {
  return state().explain(collective, bytes, dtype, options);
}
std::vector<std::string> Group::algorithms(Collective collective) const {
  return state().algorithm_names(collective);
}
void Group::record_trace(bool on) {
  state().record_trace(on);
}
std::vector<TraceEntry> Group::trace() {
  return state().trace();
}

}  // namespace col
