// Collectives and messages for ranks that drive several GPUs each, with the names of ray.util.collective.
//
// <col/group.hpp> includes this file. Each function exists twice: free, for the group that options.group names, and as
// a method of Group with the same arguments. This file documents both.
//
// Tensors. Every rank passes one tensor for each GPU that it drives, and all ranks pass the same number of tensors. Let
// n be the number of ranks and k the number of tensors of each rank. There are n * k flat ranks: tensor i of rank r
// takes part as flat rank r * k + i.
//
// Order and blocking. These calls count among the collectives of the group: all ranks make them in the same order, and
// they fail as collectives do. A call begins when the collectives in flight have ended. It runs after the work that the
// default stream of each GPU already holds. It blocks: when it returns, it has ended on all GPUs of this rank.
//
// Requires:
// - a group of backend nccl; on other groups the call is unavailable
// - tensors in GPU memory, each on another GPU. The device of a view says which one, also for an empty view.
// - equal count and dtype: of all tensors of a rank, and on all ranks
// - no Options::stream, and no Options::algorithm other than "nccl"
//
// A call that breaks one of the last three throws invalid_argument before any data moves, and the group stays usable.
// Counts or dtypes that differ between ranks are a mismatch, which breaks the group. A reduction that NCCL cannot do is
// unavailable, and so is one that NCCL cannot do as COL_NUMERICS and `deterministic` ask.
//
// Connections. The first call that names a list of GPUs connects the GPUs of all ranks, in the order of the list. Later
// calls with the same list use these connections again. The group keeps the connections of eight lists, and drops those
// that were unused for the longest time. Connecting counts against the timeout of the call. Three mistakes break the
// group:
// - ranks pass different numbers of tensors: mismatch
// - one rank passes a list that it has used before, and another rank passes a new one: mismatch
// - two ranks pass the same GPU: unavailable
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <col/export.hpp>
#include <col/options.hpp>
#include <col/types.hpp>

namespace col {

// In place: tensors[i] = op over all tensors of all ranks. All results have the same bits.
COL_EXPORT void allreduce_multigpu(std::span<const TensorView> tensors, const Options& options = {});
// As allreduce_multigpu, but only one tensor gets the result: tensor `root_tensor` of rank options.root. No other
// tensor changes.
COL_EXPORT void reduce_multigpu(std::span<const TensorView> tensors, const Options& options = {}, int root_tensor = 0);
// Every tensor gets the elements of tensor `root_tensor` of rank options.root.
COL_EXPORT void broadcast_multigpu(std::span<const TensorView> tensors, const Options& options = {},
                                   int root_tensor = 0);
// outputs[i] gets the inputs of all flat ranks, in their order. Requires: one output for each input, on the same GPU,
// with n * k times its count. The two may overlap only if inputs[i] is exactly this flat rank's block of outputs[i].
COL_EXPORT void allgather_multigpu(std::span<const TensorView> outputs, std::span<const ConstTensorView> inputs,
                                   const Options& options = {});
// The same into lists of tensors: outputs[i][f] gets the input of flat rank f. No extra copies are made. Requires: n *
// k tensors in each list, each like inputs[i] and on its GPU. All ranks use the same one of the two forms.
COL_EXPORT void allgather_multigpu(std::span<const std::vector<TensorView>> outputs,
                                   std::span<const ConstTensorView> inputs, const Options& options = {});
// outputs[i] gets the block of its flat rank, reduced over all inputs.
// Requires: one input for each output, on the same GPU, with n * k times its count. The two may overlap only if
// outputs[i] is exactly this flat rank's block of inputs[i].
COL_EXPORT void reducescatter_multigpu(std::span<const TensorView> outputs, std::span<const ConstTensorView> inputs,
                                       const Options& options = {});
// The same from lists of tensors: outputs[i] of flat rank f gets the reduction of tensor f of all lists. No extra
// copies are made. Requires: n * k tensors in each list, each like outputs[i] and on its GPU. All ranks use the same
// one of the two forms.
COL_EXPORT void reducescatter_multigpu(std::span<const TensorView> outputs,
                                       std::span<const std::vector<ConstTensorView>> inputs,
                                       const Options& options = {});

// send_multigpu sends one message from the GPU of `tensor` to GPU `destination_gpu` of rank `destination`. That rank
// calls recv_multigpu with a tensor on that GPU, and names this rank and this GPU. A GPU has the number that the
// process of its rank gives it. `n_elements`: how many elements to send or receive, from the first one; 0: all of them.
//
// Both block. The send ends when its memory may be changed, which may be as late as the recv. The recv ends when the
// data is there. Messages between two ranks pair in the order of their calls, whatever their GPUs.
//
// Errors:
// - mismatch when count, dtype or a GPU differ between the two ends. It comes at the latest one second after the
//   messages hang; with COL_CHECK=strict, it comes before any data moves
// - invalid_argument, and the group stays usable, for a rank or GPU that does not exist, a message to oneself (copy it
//   with cudaMemcpyPeer), and an n_elements that is negative or larger than the tensor
//
// The first message between two GPUs connects them. The group keeps eight such connections for each other rank, and
// drops the one that was unused for the longest time.
COL_EXPORT void send_multigpu(ConstTensorView tensor, int destination, int destination_gpu, const Options& options = {},
                              std::int64_t n_elements = 0);
COL_EXPORT void recv_multigpu(TensorView tensor, int source, int source_gpu, const Options& options = {},
                              std::int64_t n_elements = 0);

// Waits until the GPU has ended all work that this process gave to it: asynchronous calls of col, and the kernels and
// copies of the program. `gpu_id` is the number that this process gives the GPU.
//
// Blocks for `timeout` at most (zero: the timeout of the current context). An abort of the job ends the wait. Needs no
// group. Thread safe. Errors: invalid_argument (no such GPU), unavailable (no CUDA, and the message says why; a driver
// before CUDA 12.5; a stream of the GPU is being captured, and this call spoils the capture), timeout, io (the work
// failed).
COL_EXPORT void synchronize(int gpu_id, Duration timeout = {});

// The GPU that the calling thread has made current, as cudaSetDevice() does, with the number that this process gives
// it. If it has made none current, the GPUs that any thread of the process has started. None if the program has not
// started the CUDA driver; this function does not start it. Thread safe.
COL_EXPORT std::vector<int> gpus_in_use() noexcept;
// Starts the GPU, and makes it current in the calling thread until the returned pointer is released in that thread.
// Groups that it makes meanwhile use this GPU. Errors: invalid_argument (no such GPU), unavailable, io, resource.
COL_EXPORT std::shared_ptr<void> make_gpu_current(int gpu_id);

// Makes work that `later` gets from now on wait for the work that `earlier` holds now; the host does not wait. It is
// for arrays of libraries that name their stream, as __cuda_array_interface__ does. Both are streams of the GPU that
// `memory` (the array) is on; null is the legacy default stream of that GPU, after which a call without Options::stream
// comes. `earlier` may be cudaStreamPerThread: it then means the calling thread's.
//
// Needs no group. Thread safe. Errors: invalid_argument (the memory is on no GPU; `earlier` is being captured and is
// not `later`), unavailable (no CUDA, and the message says why; one of the two is the default stream, and a stream that
// is ordered with it is being captured), io. No error spoils a capture. If `later` is being captured, the function does
// nothing: the captured work runs when its graph is launched, after earlier work of that stream.
COL_EXPORT void order_streams(Stream earlier, Stream later, const void* memory);
// True if the stream of the GPU, with the number that this process gives it, is being captured; never for null. Errors:
// invalid_argument (no such GPU; cudaStreamPerThread), unavailable, io.
COL_EXPORT bool is_captured(Stream stream, int gpu_id);

}  // namespace col
