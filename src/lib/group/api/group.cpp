// The methods of Group: each says which buffers take part, the rest is shared (run/).
#include <col/group.hpp>

#include <fmt/format.h>

#include "group/call/checks.hpp"
#include "group/state.hpp"

namespace col {
namespace {

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

Work start_messages(std::string_view name, std::vector<group::Leg> legs, Group::State& state, const Options& options) {
  return state.work_of(state.messages().start(name, std::move(legs), options));
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

bool detail::is_forgotten(const Group& last) {
  return last.state().is_forgotten();
}

int Group::rank() const {
  return state().core().rank();
}
int Group::size() const {
  return state().core().size();
}
std::string_view Group::name() const {
  return state().core().name();
}
std::string_view Group::backend() const {
  return state().lanes().backend();
}
Device Group::device() const {
  return state().core().device();
}
std::vector<int> Group::ranks() const {
  std::vector<int> ranks;
  for (int r = 0; r < size(); ++r) ranks.push_back(state().core().world_rank(r));
  return ranks;
}
int Group::world_rank(int rank) const {
  group::check_peer(rank, "world_rank: rank", state().core().shape());
  return state().core().world_rank(rank);
}
int Group::rank_of(int world_rank) const {
  return state().core().surroundings().rank_of(world_rank);
}
Duration Group::timeout() const {
  return state().core().timeout();
}

void Group::destroy() {
  state().leave();
}

void Group::run(const Call& call, const Options& options) {
  state().collectives().run(call, options);
}
Work Group::start(const Call& call, const Options& options) {
  return state().work_of(state().collectives().start(call, options));
}

// ---- Point to point

void Group::send(ConstTensorView data, int destination, const Options& options) {
  state().messages().exchange_one("send", leg_of(Message::send(data, destination, options.tag)), options);
}
Work Group::isend(ConstTensorView data, int destination, const Options& options) {
  return start_messages("isend", {leg_of(Message::send(data, destination, options.tag))}, state(), options);
}
void Group::recv(TensorView data, int source, const Options& options) {
  state().messages().exchange_one("recv", leg_of(Message::recv(data, source, options.tag)), options);
}
Work Group::irecv(TensorView data, int source, const Options& options) {
  return start_messages("irecv", {leg_of(Message::recv(data, source, options.tag))}, state(), options);
}
int Group::recv_any(TensorView data, const Options& options) {
  return state().messages().exchange("recv_any", {leg_from_any(data, options.tag)}, options);
}
Work Group::irecv_any(TensorView data, const Options& options) {
  return start_messages("irecv_any", {leg_from_any(data, options.tag)}, state(), options);
}
void Group::sendrecv(ConstTensorView send, int destination, TensorView recv, int source, const Options& options) {
  state().messages().exchange(
      "sendrecv",
      {leg_of(Message::send(send, destination, options.tag)), leg_of(Message::recv(recv, source, options.tag))},
      options);
}
void Group::batch(std::span<const Message> messages, const Options& options) {
  state().messages().exchange("batch", legs_of(messages), options);
}
Work Group::ibatch(std::span<const Message> messages, const Options& options) {
  return start_messages("ibatch", legs_of(messages), state(), options);
}

// ---- Looking inside

std::string Group::explain(Collective collective, std::size_t bytes, DType dtype, const Options& options) const {
  return state().collectives().explain(collective, bytes, dtype, options);
}
std::vector<std::string> Group::algorithms(Collective collective) const {
  return state().collectives().names(collective);
}
void Group::annotate(std::string_view label) {
  const group::Use use(state().access());
  state().core().annotate(label);
}
void Group::record_trace(bool on) {
  const group::Use use(state().access());
  state().flight().trace().record(on);
}
std::vector<TraceEntry> Group::trace() {
  const group::Use use(state().access());
  return state().flight().trace().take();
}

}  // namespace col
