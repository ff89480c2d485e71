// Gloo's allreduce and reduce with our reduction functions.
#include <functional>

#include <gloo/allreduce.h>
#include <gloo/reduce.h>

#include "backend/gloo/native.hpp"
#include "backend/gloo/native_support.hpp"
#include "backend/gloo/slots.hpp"
#include "core/kernels/reduce.hpp"

namespace col::gloo_backend {
namespace {

// Which allreduce to take when the caller leaves it open. The hypercube takes 2 log2(n) rounds, the ring 4 (n - 1) or
// more. Measured on 2 cores over loopback, medians, hypercube against ring: 8 ranks 1 KiB 4.8 and 19 ms, 1 MiB 8.7 and
// 22 ms, 8 MiB 45 and 48 ms; 2 ranks 64 KiB 0.25 and 0.30 ms. Beyond, the ring's pieces of 1 MiB need less memory.
constexpr std::size_t kBcubeUpToBytes = 4 * 1024 * 1024;

using ReduceFunction = std::function<void(void*, const void*, const void*, std::size_t)>;

ReduceFunction reduce_function(const Op& op, DType type) {
  if (op.kind() == Op::Kind::user) {
    return [&op, type](void* result, const void* left, const void* right, std::size_t count) {
      op.user_function()(left, right, result, count, type);
    };
  }
  return [&op, type](void* result, const void* left, const void* right, std::size_t count) {
    core::reduce(op, type, left, right, result, count);
  };
}

bool needs_rank_order(const Op& op) {
  return op.kind() == Op::Kind::user && !op.commutative();
}

// Sums of 16-bit floats are made and sent in float32 and rounded once. A user's function gets the user's type.
DType working_type(const Request& request) {
  return request.op.kind() == Op::Kind::user ? request.in.dtype : core::accumulation_type(request.in.dtype);
}

}  // namespace

// This rank's contribution in `type`, made in `work` when it differs from the input as it is.
const void* Native::prepare(const Request& request, DType type, void* work) const {
  const bool scaled = request.op.kind() == Op::Kind::premul_sum;
  if (type != request.in.dtype) {
    core::convert(request.in.dtype, request.in.data, type, work, request.in.count);
  } else if (scaled) {
    copy(work, request.in.data, request.in.bytes());
  } else {
    return request.in.data;
  }
  if (scaled) core::premultiply(request.op.scale(), type, work, request.in.count);
  return work;
}

// Turns the reduced values in `work` into the output.
void Native::finish(const Request& request, DType type, void* work) const {
  if (request.op.kind() == Op::Kind::builtin && request.op.reduce_op() == ReduceOp::avg) {
    core::finish_average(size(), type, work, request.in.count);
  }
  if (work != request.out.data) core::convert(type, work, request.out.dtype, request.out.data, request.in.count);
}

void Native::fold_in_rank_order(const Request& request, const void* all, void* out) const {
  const std::size_t bytes = request.in.bytes();
  copy(out, all, bytes);
  for (std::size_t r = 1; r < size(); ++r) {
    request.op.user_function()(out, bytes_at(all, r * bytes), out, request.in.count, request.in.dtype);
  }
}

void Native::allreduce(const Request& request) {
  if (request.in.empty()) return barrier(request);
  if (needs_rank_order(request.op)) {
    void* const all = all_.get(size() * request.in.bytes());
    allgather(request, request.in.data, all);
    return fold_in_rank_order(request, all, request.out.data);
  }
  const DType type = working_type(request);
  const std::size_t bytes = request.in.count * size_of(type);
  void* const work = type == request.out.dtype ? request.out.data : work_.get(bytes);
  const void* const in = prepare(request, type, work);
  const bool bcube = request.algorithm == kBcube || (request.algorithm.empty() && bytes <= kBcubeUpToBytes);
  with_element_of(type, [&](auto element) {
    ::gloo::AllreduceOptions options(mesh_);
    options.setAlgorithm(bcube ? ::gloo::AllreduceOptions::Algorithm::BCUBE
                               : ::gloo::AllreduceOptions::Algorithm::RING);
    if (in != work) options.setInput<decltype(element)>(buffer_of(*mesh_, in, bytes));
    options.setOutput<decltype(element)>(buffer_of(*mesh_, work, bytes));
    options.setReduceFunction(reduce_function(request.op, type));
    options.setTag(collective_tag(request.fingerprint, bytes));
    ::gloo::allreduce(options);
  });
  finish(request, type, work);
}

void Native::reduce(const Request& request) {
  if (request.in.empty()) return barrier(request);
  if (needs_rank_order(request.op)) {
    void* const all = is_root(request) ? all_.get(size() * request.in.bytes()) : nullptr;
    gather(request, request.in.data, all);
    if (is_root(request)) fold_in_rank_order(request, all, request.out.data);
    return;
  }
  const DType type = working_type(request);
  const std::size_t bytes = request.in.count * size_of(type);
  // Gloo leaves partial sums in the output of every rank, so only the root's may be the caller's.
  const bool direct = is_root(request) && type == request.out.dtype;
  void* const work = direct ? request.out.data : work_.get(bytes);
  const void* const in = prepare(request, type, work);
  with_element_of(type, [&](auto element) {
    ::gloo::ReduceOptions options(mesh_);
    if (in != work) options.setInput<decltype(element)>(buffer_of(*mesh_, in, bytes));
    options.setOutput<decltype(element)>(buffer_of(*mesh_, work, bytes));
    options.setReduceFunction(reduce_function(request.op, type));
    options.setRoot(request.root);
    options.setTag(collective_tag(request.fingerprint, bytes));
    ::gloo::reduce(options);
  });
  if (is_root(request)) finish(request, type, work);
}

}  // namespace col::gloo_backend
