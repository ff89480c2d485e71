// The methods and free functions for several GPUs a rank: each says which tensors take part, the rest is shared
// (gpu/multi_gpu.cpp).
#include <chrono>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <col/channel.hpp>
#include <col/group.hpp>

#include "group/gpu/multi_gpu.hpp"
#include "group/staging/staging.hpp"
#include "group/state.hpp"

namespace col {
namespace {

using group::MultiGpuCall;
using group::MultiGpuMessage;
using Tensors = std::span<const TensorView>;
using ConstTensors = std::span<const ConstTensorView>;
using Lists = std::span<const std::vector<TensorView>>;
using ConstLists = std::span<const std::vector<ConstTensorView>>;

MultiGpuCall in_place(std::string_view name, Collective collective, Tensors tensors, int root_tensor = 0) {
  return {.name = name,
          .collective = collective,
          .in = {tensors.begin(), tensors.end()},
          .out = {tensors.begin(), tensors.end()},
          .root_tensor = root_tensor};
}

MultiGpuCall gathering(Tensors outputs, ConstTensors inputs) {
  return {.name = "allgather_multigpu",
          .collective = Collective::allgather,
          .in = {inputs.begin(), inputs.end()},
          .out = {outputs.begin(), outputs.end()}};
}

MultiGpuCall scattering(Tensors outputs, ConstTensors inputs) {
  return {.name = "reducescatter_multigpu",
          .collective = Collective::reduce_scatter,
          .in = {inputs.begin(), inputs.end()},
          .out = {outputs.begin(), outputs.end()}};
}

// Puts the lists into `flat`, one after another.
template <class List, class View>
void add_lists(MultiGpuCall& call, std::span<const List> lists, std::vector<View>& flat) {
  call.lists = true;
  for (const List& list : lists) {
    call.list_lengths.push_back(list.size());
    flat.insert(flat.end(), list.begin(), list.end());
  }
}

}  // namespace

// ---- Methods

void Group::allreduce_multigpu(Tensors tensors, const Options& options) {
  state().multi_gpu().run(in_place("allreduce_multigpu", Collective::allreduce, tensors), options);
}

void Group::reduce_multigpu(Tensors tensors, const Options& options, int root_tensor) {
  state().multi_gpu().run(in_place("reduce_multigpu", Collective::reduce, tensors, root_tensor), options);
}

void Group::broadcast_multigpu(Tensors tensors, const Options& options, int root_tensor) {
  state().multi_gpu().run(in_place("broadcast_multigpu", Collective::broadcast, tensors, root_tensor), options);
}

void Group::allgather_multigpu(Tensors outputs, ConstTensors inputs, const Options& options) {
  state().multi_gpu().run(gathering(outputs, inputs), options);
}

void Group::allgather_multigpu(Lists outputs, ConstTensors inputs, const Options& options) {
  MultiGpuCall call = gathering({}, inputs);
  add_lists(call, outputs, call.out);
  state().multi_gpu().run(call, options);
}

void Group::reducescatter_multigpu(Tensors outputs, ConstTensors inputs, const Options& options) {
  state().multi_gpu().run(scattering(outputs, inputs), options);
}

void Group::reducescatter_multigpu(Tensors outputs, ConstLists inputs, const Options& options) {
  MultiGpuCall call = scattering(outputs, {});
  add_lists(call, inputs, call.in);
  state().multi_gpu().run(call, options);
}

void Group::send_multigpu(ConstTensorView tensor, int destination, int destination_gpu, const Options& options,
                          std::int64_t n_elements) {
  state().multi_gpu().exchange({.name = "send_multigpu",
                                .sending = true,
                                .view = tensor,
                                .peer = destination,
                                .peer_device = destination_gpu,
                                .elements = n_elements},
                               options);
}

void Group::recv_multigpu(TensorView tensor, int source, int source_gpu, const Options& options,
                          std::int64_t n_elements) {
  state().multi_gpu().exchange({.name = "recv_multigpu",
                                .view = tensor,
                                .destination = tensor.data,
                                .peer = source,
                                .peer_device = source_gpu,
                                .elements = n_elements},
                               options);
}

// ---- Free functions

void allreduce_multigpu(Tensors tensors, const Options& options) {
  get_group(options.group).allreduce_multigpu(tensors, options);
}

void reduce_multigpu(Tensors tensors, const Options& options, int root_tensor) {
  get_group(options.group).reduce_multigpu(tensors, options, root_tensor);
}

void broadcast_multigpu(Tensors tensors, const Options& options, int root_tensor) {
  get_group(options.group).broadcast_multigpu(tensors, options, root_tensor);
}

void allgather_multigpu(Tensors outputs, ConstTensors inputs, const Options& options) {
  get_group(options.group).allgather_multigpu(outputs, inputs, options);
}

void allgather_multigpu(Lists outputs, ConstTensors inputs, const Options& options) {
  get_group(options.group).allgather_multigpu(outputs, inputs, options);
}

void reducescatter_multigpu(Tensors outputs, ConstTensors inputs, const Options& options) {
  get_group(options.group).reducescatter_multigpu(outputs, inputs, options);
}

void reducescatter_multigpu(Tensors outputs, ConstLists inputs, const Options& options) {
  get_group(options.group).reducescatter_multigpu(outputs, inputs, options);
}

void send_multigpu(ConstTensorView tensor, int destination, int destination_gpu, const Options& options,
                   std::int64_t n_elements) {
  get_group(options.group).send_multigpu(tensor, destination, destination_gpu, options, n_elements);
}

void recv_multigpu(TensorView tensor, int source, int source_gpu, const Options& options, std::int64_t n_elements) {
  get_group(options.group).recv_multigpu(tensor, source, source_gpu, options, n_elements);
}

void synchronize(int gpu_id, Duration timeout) {
  const ContextSpec& spec = Context::current().spec();
  WaitContext wait(Deadline::after(timeout > Duration::zero() ? timeout : spec.timeout), spec.control.get());
  try {
    group::gpus().synchronize(gpu_id, wait);
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("synchronize: {}", error.message()), error.group(), error.rank(),
                error.world_rank());
  }
}

std::vector<int> gpus_in_use() noexcept {
  return group::gpus_in_use();
}

std::shared_ptr<void> make_gpu_current(int gpu_id) {
  return group::gpus().make_current(gpu_id);
}

bool is_captured(Stream stream, int gpu_id) {
  return stream.handle != nullptr && group::gpus().is_captured(gpu_id, stream);
}

void order_streams(Stream earlier, Stream later, const void* memory) {
  group::gpus().put_in_order(earlier, later, memory);
}

}  // namespace col
