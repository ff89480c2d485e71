// "fold": reductions by our own kernels. Each rank folds a slice of the vector for all of them.
//
//   the input of rank 0   a0 b0 c0 d0          rank 0 has a0 a1 a2 a3, and makes A
//                rank 1   a1 b1 c1 d1    ->    rank 1 has b0 b1 b2 b3, and makes B    ->   every rank gets A B C D
//                rank 2   a2 b2 c2 d2          ...
//                rank 3   a3 b3 c3 d3
//
// A reduce sends the results to the root, a reduce_scatter(v) leaves them where they are; of a scan, a slice gives a
// result for each rank. An allreduce moves as many bytes as a ring does. Elements are combined in the order of the
// ranks, and narrow floats rounded once.
//
// A long vector is cut into pieces that follow one another, so that the memory it takes does not grow with it.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include <fmt/format.h>

#include "backend/nccl/native.hpp"
#include "backend/nccl/translate.hpp"

namespace col::nccl_backend {
namespace {

constexpr std::size_t kAlignment = 16;            // bytes that a kernel loads at once
constexpr std::size_t kMostScratch = 64UL << 20;  // bytes for the slices of one piece

struct Slice {
  std::size_t offset = 0, count = 0;  // elements of the input
};

// Whether a rank's results are the block of the input that is its own.
bool keeps_blocks(Collective collective) {
  return collective == Collective::reduce_scatter || collective == Collective::reduce_scatterv;
}

// How a vector is cut.
class Cut {
 public:
  Cut(const Request& request, int size)
      : request_(request), ranks_(static_cast<std::size_t>(size)), keeps_blocks_(keeps_blocks(request.collective)) {
    const std::size_t pack = kAlignment / size_of(request.in.dtype);
    const std::size_t most = std::max(kMostScratch / ranks_ / kAlignment, std::size_t{1}) * pack;
    // What the longest slice would be, were there one piece.
    std::size_t longest = 0;
    if (keeps_blocks_) {
      for (std::size_t r = 0; r < ranks_; ++r) longest = std::max(longest, block(r));
      extent_ = longest;
    } else {
      extent_ = request.in.count;
      longest = extent_ / ranks_ + (extent_ % ranks_ == 0 ? 0 : 1);
    }
    length_ = std::min((longest + pack - 1) / pack * pack, most);
  }

  // Elements of the longest slice; whole packs.
  std::size_t length() const noexcept { return length_; }
  // Pieces begin at 0, step(), 2 * step() … below extent().
  std::size_t extent() const noexcept { return extent_; }
  std::size_t step() const noexcept { return keeps_blocks_ ? length_ : length_ * ranks_; }

  // The slice of each rank in the piece that begins there.
  std::vector<Slice> slices(std::size_t begin) const {
    std::vector<Slice> slices(ranks_);
    std::size_t displacement = 0;  // of the rank's block
    for (std::size_t r = 0; r < ranks_; ++r) {
      const std::size_t first = keeps_blocks_ ? begin : begin + r * length_;
      const std::size_t end = keeps_blocks_ ? block(r) : extent_;
      if (first < end) slices[r] = {displacement + first, std::min(length_, end - first)};
      if (keeps_blocks_) displacement += end;
    }
    return slices;
  }

 private:
  std::size_t block(std::size_t rank) const {
    return request_.collective == Collective::reduce_scatterv ? request_.in_counts[rank] : request_.out.count;
  }

  const Request& request_;
  const std::size_t ranks_;
  const bool keeps_blocks_;
  std::size_t extent_ = 0, length_ = 0;
};

// See factor_of().
std::uint64_t factor_bits(double scale, DType dtype) {
  return row_of(dtype).kind == ElementKind::floating ? std::bit_cast<std::uint64_t>(scale) : wrapped(scale);
}

Results results_of(Collective collective) {
  const Folds folds = row_of(collective).folds;
  if (folds == Folds::up_to_rank) return Results::inclusive;
  return folds == Folds::below_rank ? Results::exclusive : Results::whole;
}

}  // namespace

struct Native::Piece {
  std::size_t begin;  // see Cut
  const std::vector<Slice>& slices;
  std::byte* blocks;   // of scratch: the rank's slice of every rank's input, then the results of a scan
  std::size_t stride;  // bytes from one to the next
  const std::uint64_t* factors;

  const Slice& slice(int rank) const { return slices[static_cast<std::size_t>(rank)]; }
  std::byte* block(int rank) const { return blocks + static_cast<std::size_t>(rank) * stride; }
};

bool Native::folds(const Request& r) const noexcept {
  if (!r.algorithm.empty()) return r.algorithm == kFold;
  const CollectiveRow& row = row_of(r.collective);
  if (!row.reduces()) return false;
  const bool nccl_has_it = row.folds == Folds::all && !row.has_counts();
  return !nccl_has_it || (!nccl_reduces(r.op, r.in.dtype) && Kernels::have(r.op, r.in.dtype));
}

void Native::check(const Request& request) const {
  if (!folds(request)) return;
  if (request.op.kind() == Op::Kind::user)
    throw Error(
        ErrorCode::unavailable,
        fmt::format("'{}' is a function of the host; copy the data there, and reduce it there", request.op.name()));
  kernels_->require();
}

void Native::fold(const Call& call) {
  const Request& r = call.request;
  if (r.in.empty()) return;
  const Cut cut(r, size_);
  const std::size_t stride = cut.length() * size_of(r.in.dtype);
  const std::size_t bytes = stride * static_cast<std::size_t>(size_);
  const bool is_scaled = r.op.kind() == Op::Kind::premul_sum;
  auto* const blocks = static_cast<std::byte*>(
      take_scratch(call, bytes + (is_scaled ? static_cast<std::size_t>(size_) * sizeof(std::uint64_t) : 0)));
  const std::uint64_t* const factors =
      is_scaled ? gather_factors(call, reinterpret_cast<std::uint64_t*>(blocks + bytes)) : nullptr;
  for (std::size_t begin = 0; begin < cut.extent(); begin += cut.step()) {
    const std::vector<Slice> slices = cut.slices(begin);
    fold(call, {begin, slices, blocks, stride, factors});
  }
  scratch_free_->record(call.stream);
}

void Native::fold(const Call& call, const Piece& piece) const {
  const Request& r = call.request;
  const Slice own = piece.slice(rank_);
  std::vector<ConstTensorView> to;
  std::vector<TensorView> from;
  for (int peer = 0; peer < size_; ++peer) {
    const Slice& theirs = piece.slice(peer);
    to.push_back(r.in.slice(theirs.offset, theirs.count));
    from.emplace_back(piece.block(peer), own.count, r.in.dtype);
  }
  exchange(call, to, from);

  TensorView result = from.front();  // of scratch, unless there is a place for it
  if (keeps_blocks(r.collective))
    result = r.out.slice(own.count > 0 ? piece.begin : 0, own.count);
  else if (r.collective == Collective::allreduce || (r.collective == Collective::reduce && rank_ == r.root))
    result = r.out.slice(own.offset, own.count);
  if (own.count > 0) {
    const bool averages = r.op.kind() == Op::Kind::builtin && r.op.reduce_op() == ReduceOp::avg;
    kernels_->fold(r.op.reduce_op(), r.in.dtype,
                   {.in = piece.blocks,
                    .out = static_cast<std::byte*>(result.data),
                    .in_stride = piece.stride,
                    .out_stride = piece.stride,
                    .count = own.count,
                    .factors = piece.factors,
                    .blocks = static_cast<std::uint32_t>(size_),
                    .divisor = averages ? static_cast<std::uint32_t>(size_) : 0,
                    .results = results_of(r.collective)},
                   call.stream);
  }
  return_results(call, piece, result);
}

// `result`: that of this rank's slice, if all ranks share one result.
void Native::return_results(const Call& call, const Piece& piece, TensorView result) const {
  const Request& r = call.request;
  if (keeps_blocks(r.collective)) return;
  const bool is_scan = results_of(r.collective) != Results::whole;
  const auto receives = [&r](int rank) {
    if (r.collective == Collective::reduce) return rank == r.root;
    return r.collective != Collective::exscan || rank > 0;
  };
  std::vector<ConstTensorView> to(static_cast<std::size_t>(size_));
  std::vector<TensorView> from(static_cast<std::size_t>(size_));
  for (int peer = 0; peer < size_; ++peer) {
    const auto p = static_cast<std::size_t>(peer);
    if (receives(peer)) {
      to[p] = result;
      if (is_scan) to[p].data = piece.block(peer);
    }
    if (receives(rank_)) from[p] = r.out.slice(piece.slice(peer).offset, piece.slice(peer).count);
  }
  exchange(call, to, from);
}

// What each rank's input is multiplied by, by rank: each knows its own.
const std::uint64_t* Native::gather_factors(const Call& call, std::uint64_t* factors) const {
  const CudaDriver& cuda = device_.cuda();
  const std::uint64_t own = factor_bits(call.request.op.scale(), call.request.in.dtype);
  for (const unsigned half : {0U, 1U}) {
    const auto place = reinterpret_cast<CUdeviceptr>(factors + rank_) + half * sizeof(std::uint32_t);
    cuda.check(cuda.MemsetD32Async(place, static_cast<std::uint32_t>(own >> (32 * half)), 1, call.stream),
               "cannot set the factor of a scaled sum");
  }
  start(call, [&nccl = call.nccl, factors, own_factor = factors + rank_, comm = call.comm, stream = call.stream] {
    return nccl.AllGather(own_factor, factors, 1, ncclUint64, comm, stream);
  });
  return factors;
}

}  // namespace col::nccl_backend
