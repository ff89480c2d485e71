#include "backend/nccl/native.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "backend/nccl/operator.hpp"
#include "backend/nccl/together.hpp"
#include "backend/nccl/translate.hpp"

namespace col::nccl_backend {
namespace {

// "nccl": one of its collectives. "nccl_p2p": sends and receives, started together. "fold": native_fold.cpp.
constexpr std::string_view kOwn = "nccl";
constexpr std::string_view kMessages = "nccl_p2p";

// Blocks of `view`, one after another, of so many elements.
template <class View>
std::vector<View> blocks_of(const View& view, std::span<const std::size_t> counts) {
  std::vector<View> blocks;
  std::size_t offset = 0;
  for (const std::size_t count : counts) {
    blocks.push_back(view.slice(offset, count));
    offset += count;
  }
  return blocks;
}

}  // namespace

Native::Native(Communicator& communicator, const GpuDevice& device, int rank, int size)
    : communicator_(communicator),
      device_(device),
      rank_(rank),
      size_(size),
      kernels_(std::make_unique<Kernels>(device.cuda())) {
  const NcclLibrary& nccl = communicator.nccl();
  // 16-bit floats are rounded at every hop, and its min and max may lose a NaN.
  for (const Collective reduction : {Collective::allreduce, Collective::reduce, Collective::reduce_scatter})
    entries_.push_back({.collective = reduction,
                        .name = kOwn,
                        .rounds_per_hop = true,
                        .drops_nan = true,
                        .arithmetic_only = true,
                        .reduces = &nccl_reduces});
  for (const Collective own : {Collective::broadcast, Collective::allgather, Collective::barrier})
    entries_.push_back({own, kOwn});
  entries_.push_back({Collective::gather, nccl.Gather != nullptr ? kOwn : kMessages});
  entries_.push_back({Collective::scatter, nccl.Scatter != nullptr ? kOwn : kMessages});
  entries_.push_back({Collective::alltoall, nccl.AlltoAll != nullptr ? kOwn : kMessages});
  for (const Collective v_form :
       {Collective::allgatherv, Collective::gatherv, Collective::scatterv, Collective::alltoallv})
    entries_.push_back({v_form, kMessages});
  if (Kernels::are_built()) {
    for (const Collective reduction : {Collective::allreduce, Collective::reduce, Collective::reduce_scatter,
                                       Collective::reduce_scatterv, Collective::scan, Collective::exscan})
      entries_.push_back({.collective = reduction,
                          .name = kFold,
                          .rank_order = true,
                          .built_in_only = true,
                          .reduces = &Kernels::have});
  }
  for (NativeEntry& entry : entries_) entry.asynchronous = true;
  byte_ = std::make_unique<GpuMemory>(device.cuda(), 1);
  scratch_free_ = std::make_unique<GpuEvent>(device.cuda());
}

void Native::run(const Request& request, CUstream stream, WaitContext& wait) {
  check(request);
  const Call call{request, stream, wait, communicator_.nccl(), communicator_.get()};
  if (folds(request)) return fold(call);
  switch (request.collective) {
    case Collective::allreduce:
    case Collective::reduce:
    case Collective::reduce_scatter:
      return reduction(call);
    case Collective::broadcast:
      return broadcast(call);
    case Collective::allgather:
    case Collective::allgatherv:
      return allgather(call);
    case Collective::gather:
    case Collective::gatherv:
      return gather(call);
    case Collective::scatter:
    case Collective::scatterv:
      return scatter(call);
    case Collective::alltoall:
    case Collective::alltoallv:
      return alltoall(call);
    case Collective::barrier:
      return barrier(call);
    default:
      throw Error(ErrorCode::unavailable,
                  fmt::format("nccl has no {} of its own; copy the data to the host", to_string(request.collective)));
  }
}

void Native::start(const Call& call, ncclResult_t result) const {
  communicator_.settle(result, fmt::format("cannot start the {}", to_string(call.request.collective)), call.wait);
}

void Native::release() noexcept {
  byte_.reset();
  kernels_.reset();
  scratch_.clear();
  scratch_free_.reset();
}

void Native::forget() noexcept {
  (void)byte_.release();
  (void)kernels_.release();
  for (auto& memory : scratch_) (void)memory.release();
  (void)scratch_free_.release();
}

void* Native::take_scratch(const Call& call, std::size_t bytes) {
  const CudaDriver& cuda = device_.cuda();
  if (bytes > scratch_bytes_) {
    // Twice as much as before, since what was too small is kept; where that does not fit, what is needed.
    std::size_t room = std::max(bytes, 2 * scratch_bytes_);
    const auto allocate = [&] { scratch_.push_back(std::make_unique<GpuMemory>(cuda, room)); };
    try {
      allocate();
    } catch (const Error& error) {
      if (error.code() != ErrorCode::resource || room == bytes) throw;
      room = bytes;
      allocate();
    }
    scratch_bytes_ = room;
  } else {
    cuda.check(cuda.StreamWaitEvent(call.stream, scratch_free_->get(), CU_EVENT_WAIT_DEFAULT), "cannot order streams");
  }
  return scratch_.back()->get();
}

void Native::copy(const Call& call, const void* from, void* to, std::size_t bytes) const {
  if (bytes == 0 || from == to) return;
  device_.cuda().check(device_.cuda().MemcpyAsync(reinterpret_cast<CUdeviceptr>(to),
                                                  reinterpret_cast<CUdeviceptr>(from), bytes, call.stream),
                       "cannot copy on the GPU");
}

// ---- With an operator

void Native::reduction(const Call& call) const {
  const Request& r = call.request;
  const Operator op(communicator_, r.op, r.in.dtype);
  const bool is_scatter = r.collective == Collective::reduce_scatter;
  const auto [count, type] = to_nccl(r.in.dtype, is_scatter ? r.out.count : r.in.count);
  switch (r.collective) {
    case Collective::allreduce:
      return start(call, call.nccl.AllReduce(r.in.data, r.out.data, count, type, op.get(), call.comm, call.stream));
    case Collective::reduce:
      return start(call,
                   call.nccl.Reduce(r.in.data, r.out.data, count, type, op.get(), r.root, call.comm, call.stream));
    default:
      return start(call, call.nccl.ReduceScatter(r.in.data, r.out.data, count, type, op.get(), call.comm, call.stream));
  }
}

// ---- Without

void Native::broadcast(const Call& call) const {
  const Request& r = call.request;
  const auto [count, type] = to_nccl(r.out.dtype, r.out.count);
  start(call, call.nccl.Broadcast(r.out.data, r.out.data, count, type, r.root, call.comm, call.stream));
}

void Native::allgather(const Call& call) const {
  const Request& r = call.request;
  const auto [count, type] = to_nccl(r.in.dtype, r.in.count);
  if (r.collective == Collective::allgather)
    return start(call, call.nccl.AllGather(r.in.data, r.out.data, count, type, call.comm, call.stream));
  const std::vector<ConstTensorView> to(static_cast<std::size_t>(size_), r.in);  // the same block for everybody
  exchange(call, to, blocks_of(r.out, r.out_counts));
}

void Native::gather(const Call& call) const {
  const Request& r = call.request;
  const bool is_v = r.collective == Collective::gatherv;
  const auto [count, type] = to_nccl(r.in.dtype, r.in.count);
  if (!is_v && call.nccl.Gather != nullptr)
    return start(call, call.nccl.Gather(r.in.data, r.out.data, count, type, r.root, call.comm, call.stream));
  std::vector<std::size_t> to(static_cast<std::size_t>(size_), 0), from(static_cast<std::size_t>(size_), 0);
  to[static_cast<std::size_t>(r.root)] = r.in.count;
  if (rank_ == r.root) {
    if (is_v)
      from.assign(r.out_counts.begin(), r.out_counts.end());
    else
      std::fill(from.begin(), from.end(), r.in.count);
  }
  exchange(call, blocks_of(r.in, to), blocks_of(r.out, from));
}

void Native::scatter(const Call& call) const {
  const Request& r = call.request;
  const bool is_v = r.collective == Collective::scatterv;
  const auto [count, type] = to_nccl(r.out.dtype, r.out.count);
  if (!is_v && call.nccl.Scatter != nullptr)
    return start(call, call.nccl.Scatter(r.in.data, r.out.data, count, type, r.root, call.comm, call.stream));
  std::vector<std::size_t> to(static_cast<std::size_t>(size_), 0), from(static_cast<std::size_t>(size_), 0);
  from[static_cast<std::size_t>(r.root)] = r.out.count;
  if (rank_ == r.root) {
    if (is_v)
      to.assign(r.in_counts.begin(), r.in_counts.end());
    else
      std::fill(to.begin(), to.end(), r.out.count);
  }
  exchange(call, blocks_of(r.in, to), blocks_of(r.out, from));
}

// In place, neither NCCL's alltoall nor messages work.
bool Native::needs_scratch(const Request& r) const noexcept {
  if (r.in.empty()) return false;
  if (folds(r)) return true;
  return (r.collective == Collective::alltoall || r.collective == Collective::alltoallv) && r.in.data == r.out.data;
}

void Native::alltoall(const Call& call) {
  const Request& r = call.request;
  if (!needs_scratch(r)) return alltoall(call, r.in);
  void* const kept = take_scratch(call, r.in.bytes());
  copy(call, r.in.data, kept, r.in.bytes());
  alltoall(call, ConstTensorView(kept, r.in.count, r.in.dtype));
  scratch_free_->record(call.stream);
}

void Native::alltoall(const Call& call, ConstTensorView in) const {
  const Request& r = call.request;
  const auto n = static_cast<std::size_t>(size_);
  if (r.collective == Collective::alltoallv)
    return exchange(call, blocks_of(in, r.in_counts), blocks_of(r.out, r.out_counts));
  const auto [count, type] = to_nccl(in.dtype, in.count / n);
  if (call.nccl.AlltoAll != nullptr)
    return start(call, call.nccl.AlltoAll(in.data, r.out.data, count, type, call.comm, call.stream));
  const std::vector<std::size_t> counts(n, in.count / n);
  exchange(call, blocks_of(in, counts), blocks_of(r.out, counts));
}

// Sends to[r] to rank r, and receives from[r] from it; what is empty is not sent. One's own is copied.
void Native::exchange(const Call& call, std::span<const ConstTensorView> to, std::span<const TensorView> from) const {
  start(call, call.nccl.GroupStart());
  Together together(call.nccl);
  for (int peer = 0; peer < size_; ++peer) {
    const ConstTensorView& source = to[static_cast<std::size_t>(peer)];
    const TensorView& target = from[static_cast<std::size_t>(peer)];
    if (peer == rank_) {
      copy(call, source.data, target.data, source.bytes());
      continue;
    }
    const NcclArray sent = to_nccl(source.dtype, source.count), received = to_nccl(target.dtype, target.count);
    if (!source.empty()) start(call, call.nccl.Send(source.data, sent.count, sent.type, peer, call.comm, call.stream));
    if (!target.empty())
      start(call, call.nccl.Recv(target.data, received.count, received.type, peer, call.comm, call.stream));
  }
  start(call, together.end());
}

// NCCL has none: a sum of one byte ends nowhere before it has begun everywhere.
void Native::barrier(const Call& call) const {
  start(call, call.nccl.AllReduce(byte_->get(), byte_->get(), 1, ncclInt8, ncclSum, call.comm, call.stream));
}

}  // namespace col::nccl_backend
