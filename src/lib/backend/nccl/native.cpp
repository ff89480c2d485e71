#include "backend/nccl/native.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "backend/nccl/left_behind.hpp"
#include "backend/nccl/translate.hpp"

namespace col::nccl_backend {
namespace {

// "nccl": one of its collectives. "nccl_p2p": sends and receives, started together. "fold": native_fold.cpp.
constexpr std::string_view kOwn = "nccl";
constexpr std::string_view kMessages = "nccl_p2p";

enum class By { nccl, newer_nccl, messages };  // newer: from 2.28 on; before, by messages

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

struct Native::Row {
  Collective collective;
  By by;
  void (Native::*run)(const Call& call);
};
constexpr Native::Row Native::kRows[] = {
    {Collective::allreduce, By::nccl, &Native::allreduce},
    {Collective::reduce, By::nccl, &Native::reduce},
    {Collective::reduce_scatter, By::nccl, &Native::reduce_scatter},
    {Collective::broadcast, By::nccl, &Native::broadcast},
    {Collective::allgather, By::nccl, &Native::allgather},
    {Collective::barrier, By::nccl, &Native::barrier},
    {Collective::gather, By::newer_nccl, &Native::gather},
    {Collective::scatter, By::newer_nccl, &Native::scatter},
    {Collective::alltoall, By::newer_nccl, &Native::alltoall},
    {Collective::allgatherv, By::messages, &Native::allgatherv},
    {Collective::gatherv, By::messages, &Native::gather},
    {Collective::scatterv, By::messages, &Native::scatter},
    {Collective::alltoallv, By::messages, &Native::alltoall},
};

Native::Native(Communicator& communicator, const GpuDevice& device, int rank, int size)
    : communicator_(communicator),
      device_(device),
      rank_(rank),
      size_(size),
      kernels_(std::make_unique<Kernels>(device.cuda())) {
  const bool is_newer = communicator.nccl().Gather != nullptr;
  for (const Row& row : kRows) {
    const bool is_own = row.by == By::nccl || (row.by == By::newer_nccl && is_newer);
    NativeEntry& entry = entries_.emplace_back(NativeEntry{row.collective, is_own ? kOwn : kMessages});
    if (!row_of(row.collective).reduces()) continue;
    // Narrow floats are rounded at every hop, and its min and max may lose a NaN.
    entry.rounds_per_hop = entry.drops_nan = entry.arithmetic_only = true;
    entry.reduces = &nccl_reduces;
  }
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
  run_row(call);
}

void Native::run_row(const Call& call) {
  const Collective wanted = call.request.collective;
  for (const Row& row : kRows) {
    if (row.collective == wanted) return (this->*row.run)(call);
  }
  throw Error(ErrorCode::unavailable,
              fmt::format("nccl has no {} of its own; copy the data to the host", to_string(wanted)));
}

// Which of them are in the launch depends only on what all ranks know: NCCL needs the same groups on all of them.
void Native::run_together(std::span<const Request* const> requests, CUstream stream, WaitContext& wait) {
  const auto call_of = [&](const Request& request) {
    return Call{request, stream, wait, communicator_.nccl(), communicator_.get()};
  };
  for (const Request* const request : requests) check(*request);
  const Call first = call_of(*requests.front());
  const std::vector<ConstTensorView> kept = keep_inputs(requests, first);
  Together together(first.nccl);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    Call call = call_of(*requests[i]);
    call.together = &together;
    if (folds(call.request)) continue;
    if (!kept[i].empty())
      alltoall_from(call, kept[i]);
    else
      run_row(call);
  }
  start(first, std::move(together));
  if (std::ranges::any_of(kept, [](const ConstTensorView& view) { return !view.empty(); }))
    scratch_free_->record(stream);
  for (const Request* const request : requests) {
    if (folds(*request)) fold(call_of(*request));
  }
}

// What is in place, and cannot be (needs_scratch()), is copied before the launch, each to a place of its own. The
// others get an empty view.
std::vector<ConstTensorView> Native::keep_inputs(std::span<const Request* const> requests, const Call& any) {
  constexpr std::size_t kAlignment = 256;  // bytes; as that of memory from the driver
  const auto room = [this](const Request& r) {
    return needs_scratch(r) && !folds(r) ? (r.in.bytes() + kAlignment - 1) / kAlignment * kAlignment : 0;
  };
  std::size_t bytes = 0;
  for (const Request* const request : requests) bytes += room(*request);
  std::vector<ConstTensorView> kept(requests.size());
  if (bytes == 0) return kept;
  auto* place = static_cast<std::byte*>(take_scratch(any, bytes));
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const Request& r = *requests[i];
    if (room(r) == 0) continue;
    copy(any, r.in.data, place, r.in.bytes());
    kept[i] = ConstTensorView(place, r.in.count, r.in.dtype);
    place += room(r);
  }
  return kept;
}

std::string Native::doing(const Call& call) {
  return fmt::format("cannot start the {}", to_string(call.request.collective));
}

void Native::release() noexcept {
  byte_.reset();
  kernels_.reset();
  scratch_.clear();
  scratch_free_.reset();
}

void Native::forget() noexcept {
  leave_behind(byte_);
  leave_behind(kernels_);
  for (auto& memory : scratch_) leave_behind(memory);
  leave_behind(scratch_free_);
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

void Native::allreduce(const Call& call) {
  const Request& r = call.request;
  const Operator op(communicator_, r.op, r.in.dtype);
  const auto [count, type] = to_nccl(r.in.dtype, r.in.count);
  start(call, call.nccl.AllReduce, r.in.data, r.out.data, count, type, op, call.comm, call.stream);
}

void Native::reduce(const Call& call) {
  const Request& r = call.request;
  const Operator op(communicator_, r.op, r.in.dtype);
  const auto [count, type] = to_nccl(r.in.dtype, r.in.count);
  start(call, call.nccl.Reduce, r.in.data, r.out.data, count, type, op, r.root, call.comm, call.stream);
}

void Native::reduce_scatter(const Call& call) {
  const Request& r = call.request;
  const Operator op(communicator_, r.op, r.in.dtype);
  const auto [count, type] = to_nccl(r.in.dtype, r.out.count);
  start(call, call.nccl.ReduceScatter, r.in.data, r.out.data, count, type, op, call.comm, call.stream);
}

// ---- Without

void Native::broadcast(const Call& call) {
  const Request& r = call.request;
  const auto [count, type] = to_nccl(r.out.dtype, r.out.count);
  start(call, call.nccl.Broadcast, r.out.data, r.out.data, count, type, r.root, call.comm, call.stream);
}

void Native::allgather(const Call& call) {
  const Request& r = call.request;
  const auto [count, type] = to_nccl(r.in.dtype, r.in.count);
  start(call, call.nccl.AllGather, r.in.data, r.out.data, count, type, call.comm, call.stream);
}

void Native::allgatherv(const Call& call) {
  const Request& r = call.request;
  const std::vector<ConstTensorView> to(static_cast<std::size_t>(size_), r.in);  // the same block for everybody
  exchange(call, to, blocks_of(r.out, r.out_counts));
}

// The lengths of the blocks on the side that only the root has, and on the other side: there, the one block is the
// root's.
Native::RootedCounts Native::rooted_counts(const Request& r, std::span<const std::size_t> counts,
                                           std::size_t block) const {
  const auto n = static_cast<std::size_t>(size_);
  RootedCounts result{.at_root = std::vector<std::size_t>(n, 0), .elsewhere = std::vector<std::size_t>(n, 0)};
  result.elsewhere[static_cast<std::size_t>(r.root)] = block;
  if (rank_ != r.root) return result;
  if (row_of(r.collective).has_counts())
    result.at_root.assign(counts.begin(), counts.end());
  else
    result.at_root.assign(n, block);
  return result;
}

void Native::gather(const Call& call) {
  const Request& r = call.request;
  const auto [count, type] = to_nccl(r.in.dtype, r.in.count);
  if (!row_of(r.collective).has_counts() && call.nccl.Gather != nullptr)
    return start(call, call.nccl.Gather, r.in.data, r.out.data, count, type, r.root, call.comm, call.stream);
  const RootedCounts counts = rooted_counts(r, r.out_counts, r.in.count);
  exchange(call, blocks_of(r.in, counts.elsewhere), blocks_of(r.out, counts.at_root));
}

void Native::scatter(const Call& call) {
  const Request& r = call.request;
  const auto [count, type] = to_nccl(r.out.dtype, r.out.count);
  if (!row_of(r.collective).has_counts() && call.nccl.Scatter != nullptr)
    return start(call, call.nccl.Scatter, r.in.data, r.out.data, count, type, r.root, call.comm, call.stream);
  const RootedCounts counts = rooted_counts(r, r.in_counts, r.out.count);
  exchange(call, blocks_of(r.in, counts.at_root), blocks_of(r.out, counts.elsewhere));
}

// In place, neither NCCL's alltoall nor messages work.
bool Native::needs_scratch(const Request& r) const noexcept {
  if (r.in.empty()) return false;
  if (folds(r)) return true;
  const CollectiveRow& row = row_of(r.collective);
  return row.in == Extent::blocks && row.out == Extent::blocks && r.in.data == r.out.data;
}

void Native::alltoall(const Call& call) {
  const Request& r = call.request;
  if (!needs_scratch(r)) return alltoall_from(call, r.in);
  void* const kept = take_scratch(call, r.in.bytes());
  copy(call, r.in.data, kept, r.in.bytes());
  alltoall_from(call, ConstTensorView(kept, r.in.count, r.in.dtype));
  scratch_free_->record(call.stream);
}

void Native::alltoall_from(const Call& call, ConstTensorView in) const {
  const Request& r = call.request;
  const auto n = static_cast<std::size_t>(size_);
  if (r.collective == Collective::alltoallv)
    return exchange(call, blocks_of(in, r.in_counts), blocks_of(r.out, r.out_counts));
  const auto [count, type] = to_nccl(in.dtype, in.count / n);
  if (call.nccl.AlltoAll != nullptr)
    return start(call, call.nccl.AlltoAll, in.data, r.out.data, count, type, call.comm, call.stream);
  const std::vector<std::size_t> counts(n, in.count / n);
  exchange(call, blocks_of(in, counts), blocks_of(r.out, counts));
}

// Sends to[r] to rank r, and receives from[r] from it; what is empty is not sent. One's own is copied.
void Native::exchange(const Call& call, std::span<const ConstTensorView> to, std::span<const TensorView> from) const {
  Together own(call.nccl);
  Call part = call;
  if (part.together == nullptr) part.together = &own;
  for (int peer = 0; peer < size_; ++peer) {
    const ConstTensorView& source = to[static_cast<std::size_t>(peer)];
    const TensorView& target = from[static_cast<std::size_t>(peer)];
    if (peer == rank_) {
      copy(call, source.data, target.data, source.bytes());
      continue;
    }
    const NcclArray sent = to_nccl(source.dtype, source.count), received = to_nccl(target.dtype, target.count);
    if (!source.empty()) start(part, call.nccl.Send, source.data, sent.count, sent.type, peer, call.comm, call.stream);
    if (!target.empty())
      start(part, call.nccl.Recv, target.data, received.count, received.type, peer, call.comm, call.stream);
  }
  if (!own.empty()) start(call, std::move(own));
}

// NCCL has none: a sum of one byte ends nowhere before it has begun everywhere.
void Native::barrier(const Call& call) {
  start(call, call.nccl.AllReduce, byte_->get(), byte_->get(), 1, ncclInt8, ncclSum, call.comm, call.stream);
}

}  // namespace col::nccl_backend
