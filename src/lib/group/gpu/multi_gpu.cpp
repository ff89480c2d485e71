#include "group/gpu/multi_gpu.hpp"

#include <utility>

#include <fmt/format.h>

#include "core/hash.hpp"
#include "group/call/order.hpp"
#include "group/staging/staging.hpp"

namespace col::group {

// The backend's own, which is the first of its entries.
std::string_view MultiGpu::algorithm() const {
  return lanes_.own().channel->native_entries().front().name;
}

MultiChannel& MultiGpu::channel_for(std::string_view call) const {
  MultiChannel* const found = lanes_.own().can.device != nullptr ? lanes_.own().can.device->multi() : nullptr;
  if (found != nullptr) return *found;
  throw core_.own_error(
      ErrorCode::unavailable,
      fmt::format("{}: the backend of this group is {}, which drives no GPUs; make the group with backend {}", call,
                  lanes_.backend(), gpu_backend_name()));
}

// The checks for both collectives and messages.
void MultiGpu::check_both(std::string_view call, const Options& options) const {
  core_.check_name(options.group);
  channel_for(call);
  if (options.stream.handle != nullptr)
    throw core_.own_error(
        ErrorCode::invalid_argument,
        fmt::format("{}: a call over several GPUs takes no stream: it comes after what the default stream of "
                    "each GPU has been given; leave Options::stream alone",
                    call));
  if (!options.algorithm.empty() && options.algorithm != algorithm())
    throw core_.own_error(ErrorCode::invalid_argument,
                          fmt::format("{}: there is one algorithm for calls over several GPUs, '{}', and not '{}'",
                                      call, algorithm(), options.algorithm));
}

// By the same rules as those that hold for NCCL's collectives over one GPU a rank.
void MultiGpu::check_numerics(const MultiGpuCall& call, const Options& options) const {
  Request request;
  request.collective = call.collective;
  request.in.dtype = request.out.dtype = call.tensors().front().dtype;
  request.op = options.op;
  request.order = order_of(call.collective, options, core_.settings().order);
  const auto objection = lanes_.own().dispatcher.objection(request, {}, algorithm());
  if (!objection) return;
  throw core_.own_error(
      ErrorCode::unavailable,
      fmt::format("{}: {}, and calls over several GPUs have nothing else; ask for less, or copy the data to the "
                  "host and reduce it there",
                  call.name, *objection));
}

void MultiGpu::run(const MultiGpuCall& call, const Options& options) {
  const Use use(access_, options);
  check_both(call.name, options);
  check(call, options, core_.shape());
  check_numerics(call, options);
  MultiChannel& channel = channel_for(call.name);
  const std::vector<int> devices = devices_of(call);
  const ConstTensorView tensor = call.tensors().front();
  const MultiRequest request{.collective = call.collective,
                             .call = call.name,
                             .devices = devices,
                             .count = tensor.count,
                             .dtype = tensor.dtype,
                             .in = call.in,
                             .out = call.out,
                             .op = options.op,
                             .root = options.root * static_cast<int>(devices.size()) + call.root_tensor};
  channel.check(request);

  // They may keep GPUs of the set busy, and peers may wait for them first.
  flight_.await_collectives();
  const PendingPtr pending = flight_.acquire();
  pending->name = call.name;
  pending->collective = true;
  pending->timeout = core_.timeout_of(options);
  pending->words = group::describe(call, options, channel.connections(devices));
  pending->call = core::Hash().add(core_.token()).add(pending->words).value();
  starter_.begin(*pending, false);
  Diagnosis diagnosis = pending->diagnose(core_.surroundings());
  WaitContext wait = core_.waiting(pending->timeout, &diagnosis);
  try {
    core_.pass_fault(pending->sequence);
    channel.run(request, wait);
    flight_.await_alike(wait);
  } catch (...) {
    core_.fail_with_current(diagnosis, pending->name);
  }
  const CallDetails details{.dtype = request.dtype, .count = request.count, .label = pending->label};
  if (core::CallRing* const ring = core_.ring())
    ring->add(core_.recorded(call.collective, details), pending->sequence, core::EntryState::ended);
  pending->end();
  if (flight_.trace().is_on()) flight_.trace().add(pending->sequence, call.collective, algorithm());
  if (core_.record() != nullptr) core_.record()->end();
}

// Counts the message. The same words on both sides, so that equal calls are equal texts.
Operation MultiGpu::describe(const MultiGpuMessage& message, int own_device) {
  const int source = message.sending ? core_.rank() : message.peer;
  const int destination = message.sending ? message.peer : core_.rank();
  const std::uint64_t number = ++sent_[{source, destination}];
  return {.text = fmt::format("message of {} {} from GPU {} of rank {} to GPU {} of rank {}", message.view.count,
                              to_string(message.view.dtype), message.sending ? own_device : message.peer_device, source,
                              message.sending ? message.peer_device : own_device, destination),
          .board = fmt::format("g/{}/{}/{}", source, destination, number),
          .sequence = number,
          .collective = false,
          .counterparts = {message.peer}};
}

// COL_CHECK=strict: the two tell each other what they are about to do.
void MultiGpu::compare_first(const Operation& operation, WaitContext& wait) {
  Store& scope = *core_.surroundings().scope;
  const auto key = [&](int of) { return fmt::format("compare/{}/{}", operation.board, of); };
  const int peer = operation.counterparts.front();
  scope.set(key(core_.rank()), operation.encode());
  const std::string theirs = scope.wait(key(peer), wait);
  scope.erase(key(peer));
  if (matches(operation, core_.rank(), theirs, peer)) return;
  if (const auto error = judge(operation, core_.rank(), {{peer, theirs}}, core_.name(), true)) throw *error;
}

void MultiGpu::exchange(const MultiGpuMessage& asked, const Options& options) {
  const Use use(access_, options);
  check_both(asked.name, options);
  check(asked, core_.shape());
  if (options.tag != 0)
    throw core_.own_error(
        ErrorCode::unavailable,
        fmt::format("{}: messages between GPUs have no tags, and pair by their order; leave the tag at 0", asked.name));
  MultiGpuMessage message = asked;
  if (message.elements > 0) message.view.count = static_cast<std::size_t>(message.elements);
  MultiChannel& channel = channel_for(message.name);
  const int device = message.view.device.index;
  const TensorView received{message.destination, message.view.count, message.view.dtype, message.view.device};
  MultiRequest request{.collective = message.sending ? Collective::send : Collective::recv,
                       .call = message.name,
                       .devices = {&device, 1},
                       .count = message.view.count,
                       .dtype = message.view.dtype,
                       .peer = message.peer,
                       .peer_device = message.peer_device};
  if (message.sending)
    request.in = {&message.view, 1};
  else
    request.out = {&received, 1};
  channel.check(request);

  const PendingPtr pending = flight_.acquire();
  pending->name = message.name;
  pending->collective = false;
  const Operation operation = describe(message, device);
  const std::uint64_t fingerprint = core::Hash().add(core_.token()).add(operation.text).value();
  if (core_.record() != nullptr) core_.record()->begin(core_.name(), starter_.last(), message.name, fingerprint);
  if (Announced* const announced = core_.surroundings().announced.get()) {
    const int source = message.sending ? core_.rank() : message.peer,
              destination = message.sending ? message.peer : core_.rank();
    announced->message(message.peer, core::Hash().add("between GPUs").add(source).add(destination).value(),
                       operation.sequence, fingerprint, [operation] { return operation; });
  }
  Diagnosis diagnosis(core_.surroundings(), {operation});
  WaitContext wait = core_.waiting(core_.timeout_of(options), &diagnosis);
  wait.waiting(-1, message.peer);
  try {
    if (core_.settings().compare_first) compare_first(operation, wait);
    channel.run(request, wait);
    flight_.await_alike(wait);
  } catch (...) {
    core_.fail_with_current(diagnosis, pending->name);
  }
  pending->end();
  if (core_.record() != nullptr) core_.record()->end();
}

}  // namespace col::group
