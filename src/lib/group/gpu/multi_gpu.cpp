// How calls over several GPUs of each rank run.
#include "group/gpu/multi_gpu.hpp"

#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "core/hash.hpp"
#include "group/call/use.hpp"
#include "group/state.hpp"

namespace col {
namespace {

// The one entry of the backend's that serves them.
constexpr std::string_view kAlgorithm = "nccl";

}  // namespace

MultiChannel& Group::State::multi_channel(std::string_view call) const {
  MultiChannel* const found = own_.gpu != nullptr ? own_.gpu->multi() : nullptr;
  if (found != nullptr) return *found;
  throw own_error(
      ErrorCode::unavailable,
      fmt::format("{}: the backend of this group is {}, which drives no GPUs; make the group with backend nccl", call,
                  backend()));
}

// The checks for both collectives and messages.
void Group::State::check_multi_gpu(std::string_view call, const Options& options) const {
  check_name(options.group);
  multi_channel(call);
  if (options.stream.handle != nullptr)
    throw own_error(
        ErrorCode::invalid_argument,
        fmt::format("{}: a call over several GPUs takes no stream: it comes after what the default stream of "
                    "each GPU has been given; leave Options::stream alone",
                    call));
  if (!options.algorithm.empty() && options.algorithm != kAlgorithm)
    throw own_error(ErrorCode::invalid_argument,
                    fmt::format("{}: there is one algorithm for calls over several GPUs, '{}', and not '{}'", call,
                                kAlgorithm, options.algorithm));
}

// By the same rules as those that hold for NCCL's collectives over one GPU a rank.
void Group::State::check_numerics(const group::MultiGpuCall& call, const Options& options) const {
  Request request;
  request.collective = call.collective;
  request.in.dtype = request.out.dtype = call.tensors().front().dtype;
  request.op = options.op;
  const auto objection = own_.dispatcher.objection(request, {.deterministic = options.deterministic}, kAlgorithm);
  if (!objection) return;
  throw own_error(
      ErrorCode::unavailable,
      fmt::format("{}: {}, and calls over several GPUs have nothing else; ask for less, or copy the data to the "
                  "host and reduce it there",
                  call.name, *objection));
}

void Group::State::run_multi_gpu(const group::MultiGpuCall& call, const Options& options) {
  const Use use(*this);
  check_multi_gpu(call.name, options);
  group::check(call, options, shape());
  check_numerics(call, options);
  MultiChannel& channel = multi_channel(call.name);
  const std::vector<int> devices = group::devices_of(call);
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
  await_collectives();
  const PendingPtr pending = acquire();
  pending->name = call.name;
  pending->collective = true;
  pending->timeout = timeout_of(options);
  pending->words = group::describe(call, options, channel.connections(devices));
  pending->call = core::Hash().add(parts_.token).add(pending->words).value();
  announce(*pending);
  group::Diagnosis diagnosis = diagnose(*pending);
  WaitContext wait(pending->timeout, parts_.surroundings.control.get(), parts_.record, &diagnosis);
  try {
    if (fault_ != nullptr) exec::FaultHook::pass(fault_, pending->sequence, fault_->step);
    channel.run(request, wait);
  } catch (...) {
    fail_with_current(diagnosis, *pending);
  }
  pending->ended = true;
  if (tracing_) trace_.push_back({pending->sequence, call.collective, kAlgorithm});
  if (parts_.record != nullptr) parts_.record->end();
}

// Counts the message. The same words on both sides, so that equal calls are equal texts.
group::Operation Group::State::describe_multi_gpu(const group::MultiGpuMessage& message, int own_device) {
  const int source = message.sending ? rank() : message.peer;
  const int destination = message.sending ? message.peer : rank();
  const std::uint64_t number = ++between_gpus_[{source, destination}];
  return {.text = fmt::format("message of {} {} from GPU {} of rank {} to GPU {} of rank {}", message.view.count,
                              to_string(message.view.dtype), message.sending ? own_device : message.peer_device, source,
                              message.sending ? message.peer_device : own_device, destination),
          .board = fmt::format("g/{}/{}/{}", source, destination, number),
          .sequence = number,
          .collective = false,
          .counterparts = {message.peer}};
}

// COL_CHECK=strict: the two tell each other what they are about to do.
void Group::State::compare_first(const group::Operation& operation, WaitContext& wait) {
  Store& scope = *parts_.surroundings.scope;
  const auto key = [&](int of) { return fmt::format("compare/{}/{}", operation.board, of); };
  const int peer = operation.counterparts.front();
  scope.set(key(rank()), operation.encode());
  const std::string theirs = scope.wait(key(peer), wait);
  scope.erase(key(peer));
  if (group::matches(operation, rank(), theirs, peer)) return;
  if (const auto error = group::judge(operation, rank(), {{peer, theirs}}, name(), true)) throw *error;
}

void Group::State::exchange_multi_gpu(const group::MultiGpuMessage& asked, const Options& options) {
  const Use use(*this);
  check_multi_gpu(asked.name, options);
  group::check(asked, shape());
  if (options.tag != 0)
    throw own_error(
        ErrorCode::unavailable,
        fmt::format("{}: messages between GPUs have no tags, and pair by their order; leave the tag at 0", asked.name));
  group::MultiGpuMessage message = asked;
  if (message.elements > 0) message.view.count = static_cast<std::size_t>(message.elements);
  MultiChannel& channel = multi_channel(message.name);
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

  const PendingPtr pending = acquire();
  pending->name = message.name;
  pending->collective = false;
  const group::Operation operation = describe_multi_gpu(message, device);
  const std::uint64_t fingerprint = core::Hash().add(parts_.token).add(operation.text).value();
  if (parts_.record != nullptr) parts_.record->begin(name(), sequence_, message.name, fingerprint);
  group::Diagnosis diagnosis(parts_.surroundings, {operation});
  WaitContext wait(timeout_of(options), parts_.surroundings.control.get(), parts_.record, &diagnosis);
  wait.waiting(-1, message.peer);
  try {
    if (host_.settings->compare_first) compare_first(operation, wait);
    channel.run(request, wait);
  } catch (...) {
    fail_with_current(diagnosis, *pending);
  }
  pending->ended = true;
  if (parts_.record != nullptr) parts_.record->end();
}

}  // namespace col
