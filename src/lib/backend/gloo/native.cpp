#include "backend/gloo/native.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <numeric>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gloo/allgather.h>
#include <gloo/allgatherv.h>
#include <gloo/allreduce.h>
#include <gloo/alltoall.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/gather.h>
#include <gloo/reduce.h>
#include <gloo/scatter.h>

#include "core/hash.hpp"
#include "core/kernels/reduce.hpp"

namespace col::gloo_backend {
namespace {

constexpr std::string_view kRing = "gloo_ring";
constexpr std::string_view kBcube = "gloo_bcube";

// Gloo's options take the element type as a template parameter, but use only its size.
struct Element16 {
  std::byte bytes[16];
};
bool has_element(const Op& /*op*/, DType dtype) noexcept {
  const std::size_t size = size_of(dtype);
  return size == 1 || size == 2 || size == 4 || size == 8 || size == 16;
}
// Requires: has_element(dtype).
template <class Body>
void with_element_of(DType dtype, Body body) {
  switch (size_of(dtype)) {
    case 1:
      return body(std::uint8_t{});
    case 2:
      return body(std::uint16_t{});
    case 4:
      return body(std::uint32_t{});
    case 8:
      return body(std::uint64_t{});
    default:
      return body(Element16{});
  }
}

std::byte* bytes_at(void* data, std::size_t offset) {
  return static_cast<std::byte*>(data) + offset;
}
const std::byte* bytes_at(const void* data, std::size_t offset) {
  return static_cast<const std::byte*>(data) + offset;
}

void copy(void* to, const void* from, std::size_t bytes) {
  if (bytes > 0 && to != from) std::memcpy(to, from, bytes);
}

std::size_t block_offset(std::span<const std::size_t> counts, std::size_t rank, DType dtype) {
  return std::accumulate(counts.begin(), counts.begin() + static_cast<std::ptrdiff_t>(rank), std::size_t{0}) *
         size_of(dtype);
}

// The tag for Gloo's collectives, from the fingerprint of the call and the number of bytes that all ranks must agree
// on.
std::uint32_t collective_tag(std::uint64_t fingerprint, std::size_t bytes) noexcept {
  return static_cast<std::uint32_t>(core::Hash().add(fingerprint).add(bytes).value());
}

}  // namespace

// What the packaged Gloo does. None of them is marked rounds_per_hop or drops_nan: the reduction functions are ours,
// and narrow floats travel as float32.
struct Native::Row {
  NativeEntry entry;
  void (Native::*run)(const Request& request);
};
constexpr Native::Row Native::kRows[] = {
    {{.collective = Collective::allreduce, .name = kRing, .reduces = &has_element}, &Native::allreduce},
    {{.collective = Collective::allreduce, .name = kBcube, .reduces = &has_element}, &Native::allreduce},
    {{.collective = Collective::reduce, .name = kRing, .reduces = &has_element}, &Native::reduce},
    {{Collective::broadcast, "gloo_binomial"}, &Native::broadcast},
    {{Collective::allgather, kRing}, &Native::allgather},
    {{Collective::allgatherv, kRing}, &Native::allgatherv},
    {{Collective::gather, "gloo_linear"}, &Native::gather},
    {{Collective::scatter, "gloo_linear"}, &Native::scatter},
    {{Collective::alltoall, "gloo_linear"}, &Native::alltoall},
    {{Collective::alltoallv, "gloo_linear"}, &Native::alltoallv},
    {{Collective::barrier, "gloo_dissemination"}, &Native::barrier},
};

std::span<const NativeEntry> Native::entries() {
  static constexpr auto kEntries = [] {
    std::array<NativeEntry, std::size(kRows)> entries{};
    std::ranges::transform(kRows, entries.begin(), &Row::entry);
    return entries;
  }();
  return kEntries;
}

void Native::run(const Request& request) {
  for (const Row& row : kRows) {
    if (row.entry.collective == request.collective) return (this->*row.run)(request);
  }
  throw Error(ErrorCode::unavailable, fmt::format("gloo has no {} of its own", to_string(request.collective)));
}

void Native::forget() {
  [[maybe_unused]] auto* const mesh = new std::shared_ptr<Mesh>(std::move(mesh_));
}

// ---- Moving

void Native::broadcast(const Request& request) {
  if (request.out.empty()) return barrier(request);
  ::gloo::BroadcastOptions options(mesh_);
  options.setOutput<std::uint8_t>(buffer_of(*mesh_, request.out.data, request.out.bytes()));
  options.setRoot(request.root);
  options.setTag(collective_tag(request.fingerprint, request.out.bytes()));
  ::gloo::broadcast(options);
}

void Native::allgather(const Request& request) {
  allgather_into(request, request.out.data);
}

void Native::allgather_into(const Request& request, void* out) {
  const void* const in = request.in.data;
  const std::size_t bytes = request.in.bytes();
  if (bytes == 0) return barrier(request);
  ::gloo::AllgatherOptions options(mesh_);
  // Without an input Gloo takes this rank's block of the output: the in-place form.
  if (in != bytes_at(out, rank() * bytes)) options.setInput<std::uint8_t>(buffer_of(*mesh_, in, bytes));
  options.setOutput<std::uint8_t>(buffer_of(*mesh_, out, size() * bytes));
  options.setTag(collective_tag(request.fingerprint, bytes));
  ::gloo::allgather(options);
}

void Native::allgatherv(const Request& request) {
  if (request.out.empty()) return barrier(request);
  const DType dtype = request.out.dtype;
  // All counts have to agree, or a block would be longer than the place for it.
  core::Hash counts_hash;
  for (const std::size_t count : request.out_counts) counts_hash.add(count);
  std::vector<std::size_t> bytes;
  for (const std::size_t count : request.out_counts) bytes.push_back(count * size_of(dtype));
  ::gloo::AllgathervOptions options(mesh_);
  if (request.in.data != bytes_at(request.out.data, block_offset(request.out_counts, rank(), dtype)))
    options.setInput<std::uint8_t>(buffer_of(*mesh_, request.in.data, request.in.bytes()));
  options.setOutput<std::uint8_t>(buffer_of(*mesh_, request.out.data, request.out.bytes()), std::move(bytes));
  options.setTag(collective_tag(request.fingerprint, counts_hash.value()));
  ::gloo::allgatherv(options);
}

void Native::gather(const Request& request) {
  gather_into(request, request.out.data);
}

void Native::gather_into(const Request& request, void* out) {
  const std::size_t bytes = request.in.bytes();
  if (bytes == 0) return barrier(request);
  ::gloo::GatherOptions options(mesh_);
  options.setInput<std::uint8_t>(buffer_of(*mesh_, request.in.data, bytes));
  if (is_root(request)) options.setOutput<std::uint8_t>(buffer_of(*mesh_, out, size() * bytes));
  options.setRoot(request.root);
  options.setTag(collective_tag(request.fingerprint, bytes));
  ::gloo::gather(options);
}

void Native::scatter(const Request& request) {
  const std::size_t bytes = request.out.bytes();
  if (bytes == 0) return barrier(request);
  ::gloo::ScatterOptions options(mesh_);
  if (is_root(request)) {
    std::vector<Buffer> blocks;
    blocks.reserve(size());
    for (std::size_t r = 0; r < size(); ++r) {
      blocks.push_back(buffer_of(*mesh_, bytes_at(request.in.data, r * bytes), bytes));
    }
    options.setInputs<std::uint8_t>(std::move(blocks));
  }
  options.setOutput<std::uint8_t>(buffer_of(*mesh_, request.out.data, bytes));
  options.setRoot(request.root);
  options.setTag(collective_tag(request.fingerprint, bytes));
  ::gloo::scatter(options);
}

void Native::alltoall(const Request& request) {
  const std::size_t bytes = request.out.bytes();
  if (bytes == 0) return barrier(request);
  const void* in = request.in.data;
  if (in == request.out.data) {
    void* const saved = work_.get(bytes);
    copy(saved, in, bytes);
    in = saved;
  }
  ::gloo::AlltoallOptions options(mesh_);
  options.setInput<std::uint8_t>(buffer_of(*mesh_, in, bytes));
  options.setOutput<std::uint8_t>(buffer_of(*mesh_, request.out.data, bytes));
  options.setTag(collective_tag(request.fingerprint, bytes));
  ::gloo::alltoall(options);
}

// As Gloo does it, but by messages of which the lengths are compared. Two ranks can disagree on a block that only they
// exchange, and Gloo would fill the receiver's block only in part, in silence. Empty blocks are sent too: so all ranks
// meet.
void Native::alltoallv(const Request& request) {
  const std::size_t element_bytes = size_of(request.out.dtype);
  const void* in = request.in.data;
  if (in != nullptr && in == request.out.data) {
    void* const saved = work_.get(request.in.bytes());
    copy(saved, in, request.in.bytes());
    in = saved;
  }
  const Buffer send = buffer_of(*mesh_, in, request.in.bytes());
  const Buffer recv = buffer_of(*mesh_, request.out.data, request.out.bytes());
  for (std::size_t distance = 1; distance < size(); ++distance) {
    const std::size_t source = (rank() + size() - distance) % size();
    const std::size_t bytes = request.out_counts[source] * element_bytes;
    recv->recv(static_cast<int>(source), block_slot(request.fingerprint),
               block_offset(request.out_counts, source, request.out.dtype), bytes);
  }
  for (std::size_t distance = 1; distance < size(); ++distance) {
    const std::size_t destination = (rank() + distance) % size();
    const std::size_t bytes = request.in_counts[destination] * element_bytes;
    send->send(static_cast<int>(destination), block_slot(request.fingerprint),
               block_offset(request.in_counts, destination, request.in.dtype), bytes);
  }
  copy(bytes_at(request.out.data, block_offset(request.out_counts, rank(), request.out.dtype)),
       bytes_at(in, block_offset(request.in_counts, rank(), request.in.dtype)),
       request.in_counts[rank()] * element_bytes);
  for (std::size_t i = 1; i < size(); ++i) {
    recv->waitRecv();
    send->waitSend();
  }
}

void Native::barrier(const Request& request) {
  ::gloo::BarrierOptions options(mesh_);
  options.setTag(collective_tag(request.fingerprint, 0));
  ::gloo::barrier(options);
}

// ---- Reducing: Gloo's allreduce and reduce with our reduction functions

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

// Sums of narrow floats are made and sent in float32 and rounded once. A user's function gets the user's type.
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
    allgather_into(request, all);
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
    gather_into(request, all);
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
